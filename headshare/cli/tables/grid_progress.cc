#include "headshare/cli/tables/grid_progress.h"

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/compare/method.h"

namespace headshare {

std::string GridProgress::title() const {
  const std::string setting = key_.setting.empty() ? "" : " " + key_.setting;
  return join_text(number_, "/", count_, " ", key_.variant, setting, " seed ", key_.seed);
}

void GridProgress::on_taken_over(size_t finished, size_t count) {
  notice(join_text(finished, " of ", count, " models were finished before and are taken over"));
}

void GridProgress::on_cell(const CellPlan& plan, int64_t number, int64_t count) {
  key_ = plan.key;
  unit_ = " " + comparison_method(plan.options).unit();
  number_ = number;
  count_ = count;
  done_ = static_cast<double>(number - 1);
}

void GridProgress::on_failure(const CellPlan&, const std::string& reason) {
  notice(join_text(title(), " failed: ", reason));
}

void GridProgress::on_step(const StepReport& report) {
  done_ = static_cast<double>(number_ - 1) + static_cast<double>(report.step) / static_cast<double>(report.total_steps);
  line_.update(
      done_, static_cast<double>(count_),
      join_text(title(), "  loss ", format_fixed(report.loss, 4), "  ", format_count(report.tokens_per_second), unit_));
}

void GridProgress::on_evaluation_progress(int64_t, int64_t) {
  line_.update(done_, static_cast<double>(count_), title() + "  evaluating");
}

void GridProgress::on_note(const std::string& note) {
  if (said_.insert(note).second) notice(join_text(title(), ": ", note));
}

}  // namespace headshare
