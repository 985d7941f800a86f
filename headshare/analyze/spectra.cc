#include "headshare/analyze/spectra.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

int64_t value_dimensions(const HeadSlices& slices) { return slices.query.is_complex() ? 2 : 1; }

// Makes a spectrum. Values beyond the dimensions are 0 but for rounding, and are left out.
Spectrum made(const Tensor& values, int64_t each, int64_t dimensions) {
  const Tensor falling = std::get<0>(values.flatten().sort(-1, /*descending=*/true)).contiguous();
  const double* first = falling.data_ptr<double>();
  const int64_t count = std::min(falling.numel(), dimensions / each);
  return {.values = {first, first + count}, .value_dimensions = each, .dimensions = dimensions};
}

// Returns R of a QR decomposition: the map's columns in an orthonormal basis of their span.
Tensor in_own_basis(const Tensor& maps) { return std::get<1>(at::linalg_qr(maps, "r")); }

// Turns [F, H, E, d] into [F, E, H d], heads side by side.
Tensor side_by_side(const Tensor& maps) { return maps.transpose(1, 2).flatten(2).contiguous(); }

// Returns the singular values of A B^H, [.., E, n] each: those of a core no larger than n.
Tensor product_values(const Tensor& a, const Tensor& b) {
  return at::linalg_svdvals(in_own_basis(a).matmul(at::adjoint(in_own_basis(b))));
}

Spectrum key_side(const HeadSlices& slices, int64_t width) {
  const Tensor values = at::linalg_svdvals(key_directions(slices, slices.key.size(1)).squeeze(1));
  return made(values, value_dimensions(slices), width);
}

}  // namespace

std::vector<Spectrum> head_spectra(const HeadSlices& slices) {
  const Tensor values = product_values(slices.query, slices.key);  // [F, H, d]
  const int64_t H = values.size(1);
  const int64_t width = slices.key.size(0) * slices.key.size(3) * value_dimensions(slices);
  std::vector<Spectrum> spectra;
  for (int64_t h = 0; h < H; ++h) {
    spectra.push_back(made(values.select(1, h), value_dimensions(slices), width));
  }
  return spectra;
}

Spectrum joint_spectrum(const HeadSlices& slices, int64_t width) {
  const Tensor values = product_values(side_by_side(slices.query), side_by_side(slices.key));
  return made(values, value_dimensions(slices), width);
}

Spectrum stacked_spectrum(const HeadSlices& slices, int64_t width) {
  const Spectrum keys = key_side(slices, width);
  const Spectrum queries = key_side({slices.key, slices.query}, width);
  return queries.width_for(kEnergyShare) >= keys.width_for(kEnergyShare) ? queries : keys;
}

}  // namespace headshare
