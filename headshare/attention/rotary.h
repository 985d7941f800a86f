// This header holds rotary positions (Su et al., RoFormer): pairs (x_i, x_{i + D/2}) turn by position * base^(-2i/D),
// or, with a period W, as those of W / 2 pairs again and again: by position * base^(-2 (i mod W/2) / W).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headshare {

using at::Tensor;

// Rotates x [B, heads, T, D] with D even; its first token stands at position `first`.
Tensor rotate(const Tensor& x, int64_t first, double base);
// Rotates with a period, which is even and divides D.
Tensor rotate(const Tensor& x, int64_t first, double base, int64_t period);
// Rotates the last `width` dimensions, an even number, as vectors of their own; those before them stay as they are.
Tensor rotate_last(const Tensor& x, int64_t first, double base, int64_t width);

// These are the positions and angles of a rotation, for passes without autograd.
struct RotaryAngles {
  int64_t first, tokens;  // the position of the first token, and how many there are
  int64_t width, period;  // how many of the last dimensions turn, and after how many the angles come again
  double base;

  bool operator==(const RotaryAngles& other) const = default;
};

// Rotates as rotate_last() does with a period, or back: each is the gradient of the other.
Tensor rotary_pass(const Tensor& x, const RotaryAngles& angles, bool back);

}  // namespace headshare
