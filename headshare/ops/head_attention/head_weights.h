// Computes where heads look: the weights that attend() never holds.
#pragma once

#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {

// Returns softmax(score + mask), [B, H, T, S], by the plain formula; rows of queries that see no key are 0. It is for
// analysis: problem.value is not read.
Tensor head_weights(const HeadProblem& problem, const HeadMask& mask);

}  // namespace headshare
