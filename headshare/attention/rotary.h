// This header holds rotary positions (Su et al., RoFormer): pairs (x_i, x_{i + D/2}) turn by position * base^(-2i/D),
// or, with a period W, as those of W / 2 pairs again and again: by position * base^(-2 (i mod W/2) / W). Scaling slows
// pairs down.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "headshare/attention/rotary_scaling.h"

namespace headshare {

using at::Tensor;

// The angles of a token are its position times these frequencies, [W / 2]. `factor` multiplies cosines and sines.
struct RotaryFrequencies {
  Tensor frequencies;
  double factor = 1;
};

// Returns the frequencies of vectors of `width` dimensions, an even number, in double, on the device of `options`.
// `scaling` must be resolved.
RotaryFrequencies rotary_frequencies(int64_t width, double base, const RotaryScaling& scaling,
                                     const at::TensorOptions& options = {});

// These are the positions and angles of a rotation.
struct RotaryAngles {
  int64_t first, tokens;  // the position of the first token, and how many there are
  int64_t width;          // so many of the last dimensions turn, an even number; those before them stay as they are
  int64_t period;         // the frequencies of so many dimensions come again and again; even, and a divisor of `width`
  double base;
  RotaryScaling scaling = {};  // resolved

  bool operator==(const RotaryAngles& other) const = default;
};

// Rotates x [B, heads, T, D].
Tensor rotate(const Tensor& x, const RotaryAngles& angles);

// Rotates without autograd, or gives the gradient, which turns back: each is the gradient of the other.
Tensor rotary_pass(const Tensor& x, const RotaryAngles& angles, bool back);

}  // namespace headshare
