#include "headshare/analyze/spectra.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/convert/share/shared_maps.h"

namespace headshare {
namespace {

// The energy that the two sides of a stacked map are compared by.
constexpr double kMost = 0.9;

int64_t value_dimensions(const HeadSlices& slices) { return slices.query.is_complex() ? 2 : 1; }

// Dimensions of all heads' keys together.
int64_t dimensions(const HeadSlices& slices) {
  return slices.key.size(0) * slices.key.size(1) * slices.key.size(3) * value_dimensions(slices);
}

Spectrum made(const Tensor& values, int64_t each, int64_t dimensions) {
  const Tensor falling = std::get<0>(values.flatten().sort(-1, /*descending=*/true)).contiguous();
  const double* first = falling.data_ptr<double>();
  return {.values = {first, first + falling.numel()}, .value_dimensions = each, .dimensions = dimensions};
}

// R of a QR decomposition: the map's columns in an orthonormal basis of their span.
Tensor in_own_basis(const Tensor& maps) { return std::get<1>(at::linalg_qr(maps, "r")); }

// [F, H, E, d] -> [F, E, H d], heads side by side.
Tensor side_by_side(const Tensor& maps) { return maps.transpose(1, 2).flatten(2).contiguous(); }

// The singular values of A B^H, [.., E, n] each: those of a core no larger than n.
Tensor product_values(const Tensor& a, const Tensor& b) {
  return at::linalg_svdvals(in_own_basis(a).matmul(at::adjoint(in_own_basis(b))));
}

Spectrum key_side(const HeadSlices& slices) {
  const Tensor values = at::linalg_svdvals(key_directions(slices, slices.key.size(1)).squeeze(1));
  return made(values, value_dimensions(slices), dimensions(slices));
}

}  // namespace

std::vector<Spectrum> head_spectra(const HeadSlices& slices) {
  const Tensor values = product_values(slices.query, slices.key);  // [F, H, d]
  const int64_t H = values.size(1);
  std::vector<Spectrum> spectra;
  for (int64_t h = 0; h < H; ++h) {
    spectra.push_back(made(values.select(1, h), value_dimensions(slices), dimensions(slices) / H));
  }
  return spectra;
}

Spectrum joint_spectrum(const HeadSlices& slices) {
  const Tensor values = product_values(side_by_side(slices.query), side_by_side(slices.key));
  return made(values, value_dimensions(slices), dimensions(slices));
}

Spectrum stacked_spectrum(const HeadSlices& slices) {
  const Spectrum keys = key_side(slices);
  const Spectrum queries = key_side({slices.key, slices.query});
  return queries.width_for(kMost) >= keys.width_for(kMost) ? queries : keys;
}

}  // namespace headshare
