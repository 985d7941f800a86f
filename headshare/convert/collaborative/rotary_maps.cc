#include "headshare/convert/collaborative/rotary_maps.h"

#include <ATen/ATen.h>

namespace headshare {

Tensor as_complex(const Tensor& maps) {
  const int64_t half = maps.size(-1) / 2;
  return at::complex(maps.slice(-1, 0, half).contiguous(), maps.slice(-1, half).contiguous());
}

Tensor turning_matrices(const Tensor& numbers) {
  const Tensor real = at::diag_embed(at::real(numbers)), imaginary = at::diag_embed(at::imag(numbers));
  return at::cat({at::cat({real, imaginary}, -1), at::cat({-imaginary, real}, -1)}, -2);
}

Tensor by_frequency(const Tensor& maps, int64_t F) {
  return as_complex(maps).view({maps.size(0), maps.size(1), -1, F}).permute({3, 0, 1, 2}).contiguous();
}

Tensor as_pairs_of_columns(const Tensor& turning) { return at::cat({at::real(turning), at::imag(turning)}, -1); }

Tensor as_real_maps(const Tensor& slices) {
  if (!slices.is_complex()) return slices[0];
  return as_pairs_of_columns(slices.squeeze(3).permute({1, 2, 0}));
}

Tensor as_slices(const Tensor& maps, bool turning) {
  return turning ? by_frequency(maps, maps.size(-1) / 2) : maps.unsqueeze(0);
}

}  // namespace headshare
