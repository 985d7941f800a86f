// Distillation: a model, the student, learns what another one, its teacher, says of the same tokens.
#pragma once

#include "headshare/ops/cross_entropy.h"

namespace headshare {

// A loss summed over tokens, and how many there were: means are formed by whoever knows all parts.
struct SummedLoss {
  Tensor sum;          // scalar, nats
  int64_t tokens = 0;  // targets that were not kIgnoredTarget
  Tensor plain = {};   // of a lesson: what the sum would be without a teacher, without gradients; else undefined
};

// What a teacher says of N tokens, without gradients.
struct Lesson {
  Tensor hidden;       // last hidden states [N, E], before the output layer
  TeacherRows scores;  // and what makes scores of them; shares memory with the teacher
};

// How a student learns from a lesson.
struct Learning {
  Distillation scores = {};
  double hidden = 0;  // weight of hidden_difference() beside the loss of scores
};

// The mean squared difference between hidden states [N, E] of both, in units of the teacher's mean square; a scalar, 0
// without tokens. Throws Error where the widths differ.
Tensor hidden_difference(const Tensor& student, const Tensor& teacher);

}  // namespace headshare
