#include "headshare/cli/tables/cell_progress.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"

namespace headshare {

void CellProgressLine::on_step(const StepReport& report) {
  last_ = report;
  line_.update(static_cast<double>(report.step), static_cast<double>(report.total_steps),
               join_text("step ", report.step, "/", report.total_steps, "  loss ", format_fixed(report.loss, 4), "  ",
                         format_count(report.tokens_per_second), "/s"));
}

void CellProgressLine::on_evaluation_progress(int64_t done, int64_t total) {
  line_.update(static_cast<double>(last_.step), static_cast<double>(last_.total_steps),
               join_text("evaluating ", done, "/", total));
}

}  // namespace headshare
