// Applies dropout to single values, as on embeddings and residual branches: the mask is drawn while the values pass, by
// the threads that pass them, and drawn again for the gradient instead of being kept.
#pragma once

#include <cstdint>

#include "headshare/kernels/dropout_mask.h"
#include "headshare/kernels/parallel.h"

namespace headshare::kernels {

// Computes y[e] = x[e] * 1 / (1 - p) or 0, for e < n; T is float or Bf16. Value e is the weight of `keeps(mask, 0, 0,
// i, j)` with i = e / 4096 * 512 + e % 512 and j = e / 512 % 8: equal for any number of threads. n < 2^35.
template <typename T>
void element_dropout(const T* x, int64_t n, const DropoutMask& mask, T* y, const Parallel& parallel);

}  // namespace headshare::kernels
