// In distillation a model, the student, learns what another one, its teacher, predicts for the same tokens.
#pragma once

#include "headshare/ops/cross_entropy.h"

namespace headshare {

// A SummedLoss is a loss summed over tokens, and their number: whoever knows all summands forms the mean.
struct SummedLoss {
  Tensor sum;          // scalar, nats
  int64_t tokens = 0;  // targets that were not kIgnoredTarget
  Tensor plain = {};   // with a teacher the sum without a teacher, without gradients; else undefined
};

// A TeacherOutput holds a teacher's outputs for N tokens, without gradients.
struct TeacherOutput {
  Tensor hidden;       // last hidden states [N, E], before the output layer
  TeacherRows scores;  // gives the teacher's logits and shares its memory
};

// DistillationWeights say how a student learns from what a teacher gave.
struct DistillationWeights {
  Distillation scores = {};
  double hidden = 0;  // weight of hidden_difference() beside the loss of logits
};

// Returns the mean squared difference between hidden states [N, E] of both, in units of the teacher's mean square; a
// scalar, 0 without tokens. Throws Error where the widths differ.
Tensor hidden_difference(const Tensor& student, const Tensor& teacher);

}  // namespace headshare
