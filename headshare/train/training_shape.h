// This header tells how much memory a training step takes, as far as the options of the loop decide it.
#pragma once

#include "headshare/models/size.h"
#include "headshare/train/trainer.h"

namespace headshare {

// Returns what the loop's options say of the memory that a step takes; a task adds its batches.
inline TrainingShape training_shape(const TrainOptions& options) {
  return {.moving_averages = options.ema_decay > 0 ? 1 : 0,
          .recompute = options.activation_checkpointing,
          .bf16 = options.precision == Precision::kBf16};
}

}  // namespace headshare
