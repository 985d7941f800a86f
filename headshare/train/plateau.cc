#include "headshare/train/plateau.h"

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"

namespace headshare {

void PlateauWatch::on_step(const StepReport& report) {
  constexpr int64_t kFifthTenth = 4;
  const int64_t tenth = (report.step - 1) * 10 / report.total_steps;
  if (tenth != tenth_) {
    if (tenth_ == kFifthTenth) judge();
    *this = PlateauWatch(entropy_, advice_);
    tenth_ = tenth;
    first_step_ = report.step;
  }
  last_step_ = report.step;
  sum_ += report.plain_loss.value_or(report.loss);  // a divergence is not to be compared with an entropy
  ++count_;
  if (report.step == report.total_steps) judge();
}

void PlateauWatch::judge() const {
  const double mean = sum_ / static_cast<double>(count_);
  if (mean < kPlateauShare * entropy_) return;
  notice(
      join_text("the training loss, ", format_fixed(mean, 3), " on average from step ", first_step_, " to ", last_step_,
                ", is not below ", percent_text(kPlateauShare), " of ", format_fixed(entropy_, 3),
                ", the unigram entropy of the text: the model has learnt at most which tokens are frequent and which ",
                "go together. Such models leave this plateau late; ", advice_));
}

}  // namespace headshare
