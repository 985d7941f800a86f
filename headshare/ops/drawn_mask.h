// Draws the masks of headshare/kernels/dropout_mask.h with libtorch's operations, on any device: a card drops the
// weights and elements that the CPU's kernels drop, bit for bit. The Philox generator is computed on whole tensors of
// 64-bit integers, about a hundred element-wise passes.
#pragma once

#include <ATen/core/Tensor.h>

#include "headshare/kernels/dropout_mask.h"

namespace headshare {

using at::Tensor;

// This is a part of the weights [B, heads, T, S] of a whole mask, whose first row and column have these numbers there.
struct DrawnPart {
  int64_t B = 1, heads = 1, T = 1, S = 1;
  int64_t first_query = 0, first_key = 0;
};

// Returns the factors of weights, [B, heads, T, S]: mask.kept_scale() or 0; `options` give type and device.
Tensor drawn_weight_factors(const kernels::DropoutMask& mask, const DrawnPart& part, const at::TensorOptions& options);

// Returns the factors of n single values, [n], in the order of kernels::element_dropout().
Tensor drawn_element_factors(const kernels::DropoutMask& mask, int64_t n, const at::TensorOptions& options);

}  // namespace headshare
