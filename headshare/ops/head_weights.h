// Where heads look: the weights that attend() never holds.
#pragma once

#include "headshare/ops/head_attention.h"

namespace headshare {

// softmax(score + mask), [B, H, T, S], by the plain formula; rows of queries that see no key are 0. For analysis:
// problem.value is not read.
Tensor head_weights(const HeadProblem& problem, const HeadMask& mask);

}  // namespace headshare
