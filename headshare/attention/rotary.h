// Rotary positions (Su et al., RoFormer): pairs (x_i, x_{i + D/2}) turn by position * base^(-2i/D).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headshare {

using at::Tensor;

// x [B, heads, T, D] with D even; its first token stands at position `first`.
Tensor rotate(const Tensor& x, int64_t first, double base);

}  // namespace headshare
