// This header takes one step of an optimizer, for the training loop and for whoever measures how long a step takes.
#pragma once

#include <optional>
#include <utility>

#include "headshare/ops/precision.h"
#include "headshare/train/optimizer.h"
#include "headshare/train/reducer.h"
#include "headshare/train/task.h"

namespace headshare {

struct StepOptions {
  int64_t accumulation = 1;                // micro-batches, of all processes together
  Precision precision = Precision::kFp32;  // not kAuto
  double max_gradient_norm = 1;            // 0: gradients stay as long as they are
};

// These sums are over the micro-batches of all processes.
struct StepSums {
  int64_t targets = 0;
  double loss = 0;                        // mean nats per target
  std::optional<double> plain_loss = {};  // the same without what a teacher adds, where it has a say
  double gradient_norm = 0;               // before it is shortened

  // Returns name and value of the first that is not finite, "loss" or "gradient norm"; nothing where both are.
  std::optional<std::pair<const char*, double>> not_finite() const;
};

// Takes step number `step` = 0, 1, ...: draws, computes the micro-batches of this process, adds those of the
// optimizer's other processes, and moves the parameters. They stay where they are when the loss or the gradient is not
// finite. The sums decide that, so that all processes find the same: one that left the step alone would let the others
// wait for it. Throws Error for a draw without targets.
StepSums take_step(Task& task, Optimizer& optimizer, const StepOptions& options, int64_t step, double learning_rate);

}  // namespace headshare
