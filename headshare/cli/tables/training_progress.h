// This observer shows a training run on the screen: one progress line, and a line for each evaluation.
#pragma once

#include <string>

#include "headshare/cli/terminal/progress.h"
#include "headshare/train/observer.h"

namespace headshare {

// Returns "73.1%" for Gap::recovered, which may lie outside 0 to 100.
std::string recovered_text(double recovered);

class TrainingProgress : public Observer {
 public:
  explicit TrainingProgress(const std::string& title) : line_(title) {}

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;
  void on_evaluation(const EvaluationReport& report) override;
  void on_teacher(const Evaluation& teacher) override;

  void finish() { line_.hide(); }

 private:
  ProgressLine line_;
  StepReport last_;
};

}  // namespace headshare
