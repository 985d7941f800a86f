// One step of an optimizer: the training loop takes it, and so does whoever measures how long it takes.
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

// Over the micro-batches of all processes.
struct StepSums {
  int64_t targets = 0;
  double loss = 0;                        // mean nats per target
  std::optional<double> plain_loss = {};  // the same without what a teacher adds, where it has a say
  double gradient_norm = 0;               // before it is shortened

  // Name and value of the first that is not finite, "loss" or "gradient norm"; nothing where both are.
  std::optional<std::pair<const char*, double>> not_finite() const;
};

// Step number `step` = 0, 1, ...: draws, computes the micro-batches of this process, adds those of the others, and
// moves the parameters. They stay where they are when the loss or the gradient is not finite. That is judged by the
// sums, so that all processes find the same: one that left the step alone would let the others wait for it. Throws
// Error for a draw without targets.
StepSums take_step(Task& task, Optimizer& optimizer, const StepOptions& options, int64_t step, double learning_rate,
                   Reducer& reducer = one_process());

}  // namespace headshare
