#include "headshare/cli/training_progress.h"

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/proc.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/terminal.h"

namespace headshare {
void TrainingProgress::on_step(const StepReport& report) {
  last_ = report;
  line_.update(static_cast<double>(report.step), static_cast<double>(report.total_steps),
               join_text("step ", report.step, "/", report.total_steps, "  loss ", format_fixed(report.loss, 4),
                         "  lr ", report.learning_rate, "  ", format_count(report.tokens_per_second), " tokens/s  ",
                         format_bytes(static_cast<double>(peak_memory_bytes()))));
}

void TrainingProgress::on_evaluation_progress(int64_t done, int64_t total) {
  // A run is stopped between steps; an evaluation over much text is worth interrupting only while
  // nothing depends on it, so the flag is looked at after the step.
  line_.update(static_cast<double>(last_.step), static_cast<double>(last_.total_steps),
               join_text("evaluating ", done, "/", total));
}

void TrainingProgress::on_evaluation(const EvaluationReport& report) {
  std::string text = join_text("step ", report.step, ": validation loss ", format_fixed(report.evaluation.loss, 4));
  for (const Score& score : report.evaluation.scores) text += ", " + score.name + " " + format_fixed(score.value, 4);
  print_status(text + (report.best ? " (best so far)" : ""));
}

}  // namespace headshare
