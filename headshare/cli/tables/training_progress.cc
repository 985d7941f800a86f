#include "headshare/cli/tables/training_progress.h"

#include "headshare/base/error.h"
#include "headshare/base/proc.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string evaluation_text(const Evaluation& evaluation) {
  std::string text = "validation loss " + format_fixed(evaluation.loss, 4);
  for (const Score& score : evaluation.scores)
    text += ", " + score_heading(score.name) + " " + score_value_text(score.value, 4);
  return text;
}

}  // namespace

std::string recovered_text(double recovered) { return percent_text(recovered, 1); }

void TrainingProgress::on_step(const StepReport& report) {
  last_ = report;
  line_.update(static_cast<double>(report.step), static_cast<double>(report.total_steps),
               join_text("step ", report.step, "/", report.total_steps, "  loss ", format_fixed(report.loss, 4),
                         "  lr ", report.learning_rate, "  ", format_count(report.tokens_per_second), " ", unit_,
                         "/s  ", format_bytes(static_cast<double>(peak_memory_bytes()))));
}

void TrainingProgress::on_evaluation_progress(int64_t done, int64_t total) {
  // The trainer stops a run before the first step and between steps, and looks at the flag there.
  line_.update(static_cast<double>(last_.step), static_cast<double>(last_.total_steps),
               join_text("evaluating ", done, "/", total));
}

void TrainingProgress::on_evaluation(const EvaluationReport& report) {
  std::string text = join_text("step ", report.step, report.averaged ? ", average of checkpoints" : "", ": ",
                               evaluation_text(report.evaluation));
  if (report.recovered) text += ", recovered " + recovered_text(*report.recovered);
  print_status(text + (report.best ? " (best so far)" : ""));
}

void TrainingProgress::on_teacher(const Evaluation& teacher) { print_status("teacher: " + evaluation_text(teacher)); }

}  // namespace headshare
