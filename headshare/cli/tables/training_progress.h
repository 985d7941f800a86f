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
  // `unit` names what speeds count: "tokens".
  TrainingProgress(const std::string& title, std::string unit) : line_(title), unit_(std::move(unit)) {}

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;
  void on_evaluation(const EvaluationReport& report) override;
  void on_teacher(const Evaluation& teacher) override;

  void finish() { line_.hide(); }

 private:
  ProgressLine line_;
  std::string unit_;
  StepReport last_;
};

}  // namespace headshare
