// Dimensions i and i + W / 2 of a vector of width W are one complex number. Multiplying by one commutes with the
// rotation of positions, which multiplying either dimension by itself does not.
#pragma once

#include <ATen/ATen.h>

namespace headshare {

// These are the halves of the last axis: the real parts and the imaginary parts of its pairs.
inline at::Tensor real_half(const at::Tensor& x) { return x.slice(-1, 0, x.size(-1) / 2); }
inline at::Tensor imaginary_half(const at::Tensor& x) { return x.slice(-1, x.size(-1) / 2); }

// Multiplies the pairs of x and m, [.., W] each, as complex numbers.
inline at::Tensor complex_product(const at::Tensor& x, const at::Tensor& m) {
  return at::cat({real_half(x) * real_half(m) - imaginary_half(x) * imaginary_half(m),
                  real_half(x) * imaginary_half(m) + imaginary_half(x) * real_half(m)},
                 -1);
}

}  // namespace headshare
