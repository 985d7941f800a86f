// An observer hears what a training run reports. The loop only reports; observers write files and screens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headshare/train/task.h"

namespace headshare {

struct StepReport {
  int64_t step = 0;  // 1-based: steps done
  int64_t total_steps = 0;
  double loss = 0;                        // mean nats per target of this step's batch: the loss that is learnt from
  std::optional<double> plain_loss = {};  // the same without what a teacher adds; nothing where there is no teacher
  double learning_rate = 0;
  double gradient_norm = 0;      // before clipping
  double tokens_per_second = 0;  // targets, over the time since the last report
  int64_t tokens = 0;            // targets seen since the run began, resumptions included
  double epochs = 0;
  double seconds = 0;  // of training in this process
};

struct EvaluationReport {
  int64_t step = 0;
  Evaluation evaluation;
  bool best = false;                     // so far
  double seconds = 0;                    // seconds that the evaluation took
  std::optional<double> recovered = {};  // Gap::recovered
  bool averaged = false;                 // of the mean over the last checkpoints' weights, at the end of a run
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_evaluation_progress(int64_t /*done*/, int64_t /*total*/) {}
  virtual void on_evaluation(const EvaluationReport&) {}
  // Hears the evaluation of the teacher, before the first step.
  virtual void on_teacher(const Evaluation&) {}
  virtual void on_checkpoint(int64_t /*step*/, const std::string& /*directory*/) {}
  // Puts everything reported up to here on disk: a checkpoint is about to count on it.
  virtual void flush() {}
};

}  // namespace headshare
