#include "headshare/convert/shared_heads/shared_maps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr int kAlignments = 8;  // rounds of aligning heads to their mean

// [F, H, E, d] -> [F, G, H / G, E, d].
Tensor in_groups(const Tensor& x, int64_t groups) {
  return x.view({x.size(0), groups, x.size(1) / groups, x.size(2), x.size(3)});
}

SharedMaps least_squares(const HeadSlices& heads, int64_t groups, int64_t rank) {
  const int64_t each = heads.key.size(1) / groups;
  const Tensor key = leading_directions(key_directions(heads, each), rank);
  const SharedMaps maps{best_queries(heads, key.repeat_interleave(each, 1)), key};
  const Tensor factors = balancing_factors(maps).unsqueeze(2);  // [F, G, 1, r]
  return {maps.query / factors.repeat_interleave(each, 1), maps.key * factors};
}

// The unitary U that brings x U closest to the reference, for each of x [.., E, d].
Tensor alignment(const Tensor& x, const Tensor& reference) {
  const auto [u, s, vh] = at::linalg_svd(at::adjoint(x).matmul(reference), /*full_matrices=*/false);
  return u.matmul(vh);
}

SharedMaps aligned_mean(const HeadSlices& heads, int64_t groups) {
  const Tensor keys = in_groups(heads.key, groups);
  Tensor reference = keys.slice(2, 0, 1);  // [F, G, 1, E, d]
  Tensor turned;
  for (int i = 0; i < kAlignments; ++i) {
    turned = alignment(keys, reference.expand_as(keys));
    reference = keys.matmul(turned).mean(2, /*keepdim=*/true);
  }
  const Tensor query = in_groups(heads.query, groups).matmul(turned);
  return {query.flatten(1, 2), reference.squeeze(2)};
}

// |A B^H|^2 over all slices.
double squared_norm(const Tensor& a, const Tensor& b) {
  const Tensor products = at::adjoint(a).matmul(a) * at::adjoint(b).matmul(b).transpose(-1, -2);
  return at::real(products.sum()).item<double>();
}

}  // namespace

Tensor gram_root(const Tensor& x) {
  const auto [values, vectors] = at::linalg_eigh(at::adjoint(x).matmul(x));
  return vectors * values.clamp_min(0).sqrt().unsqueeze(-2);
}

Tensor key_directions(const HeadSlices& slices, int64_t heads) {
  const Tensor each = slices.key.matmul(gram_root(slices.query));
  const Tensor grouped = in_groups(each, each.size(1) / heads);  // [F, G, n, E, d]
  return grouped.transpose(2, 3).flatten(3);
}

Tensor solved(const Tensor& square, const Tensor& right) {
  const Tensor size = at::real(square.diagonal(0, -2, -1)).mean(-1).clamp_min(kLeastSize).unsqueeze(-1).unsqueeze(-1);
  constexpr double kRidge = 1e-13;
  return at::linalg_solve(square + kRidge * size * at::eye(square.size(-1), square.options()), right);
}

Tensor coefficients(const Tensor& w, const Tensor& maps) {
  return solved(at::adjoint(w).matmul(w), at::adjoint(w).matmul(maps));
}

Tensor best_queries(const HeadSlices& heads, const Tensor& key) {
  return heads.query.matmul(at::adjoint(coefficients(key, heads.key)));
}

Tensor leading_directions(const Tensor& z, int64_t rank) {
  const bool tall = z.size(-1) <= z.size(-2);
  const auto [values, vectors] = at::linalg_eigh(tall ? at::adjoint(z).matmul(z) : z.matmul(at::adjoint(z)));
  const int64_t kept = std::min(rank, values.size(-1));
  const Tensor squares = values.slice(-1, values.size(-1) - kept).flip(-1).unsqueeze(-2);  // [.., 1, kept]
  Tensor directions = vectors.slice(-1, values.size(-1) - kept).flip(-1);
  if (tall) directions = z.matmul(directions);
  constexpr double kNothing = 1e-14;  // of the largest square
  const Tensor counts = squares > kNothing * squares.amax(-1, /*keepdim=*/true);
  const Tensor lengths = tall ? squares.clamp_min(0).sqrt() : at::ones_like(squares);
  directions =
      at::where(counts, directions / at::where(counts, lengths, at::ones_like(lengths)), at::zeros_like(directions));
  return at::constant_pad_nd(directions, {0, rank - kept});
}

Tensor balancing_factors(const SharedMaps& maps) {
  const auto squares = [](const Tensor& x) { return at::real(x * x.conj()).sum(2); };  // [F, heads, r]
  const int64_t groups = maps.key.size(1);
  const Tensor query = squares(maps.query).view({maps.query.size(0), groups, -1, maps.query.size(3)}).mean(2);
  const Tensor key = squares(maps.key);
  const Tensor unused = (query == 0).logical_or(key == 0);
  const Tensor ones = at::ones_like(key);
  return (at::where(unused, ones, query) / at::where(unused, ones, key)).pow(0.25);
}

double energy(const HeadSlices& heads) { return squared_norm(heads.query, heads.key); }

HeadSlices normalised(const HeadSlices& slices) {
  const double size = std::sqrt(energy(slices));
  return size > 0 ? HeadSlices{slices.query / size, slices.key} : slices;
}

SharedMaps pooled(const HeadSlices& heads, int64_t groups, int64_t rank, Pooling how) {
  HS_DCHECK(how == Pooling::kLeastSquares || rank == heads.key.size(3));
  if (how == Pooling::kMean) return {heads.query, in_groups(heads.key, groups).mean(2)};
  if (how == Pooling::kAligned) return aligned_mean(heads, groups);
  return least_squares(heads, groups, rank);
}

HeadSlices expanded(const SharedMaps& maps) {
  return {maps.query, maps.key.repeat_interleave(maps.query.size(1) / maps.key.size(1), 1)};
}

double relative_change(const HeadSlices& before, const HeadSlices& after) {
  const double change = squared_norm(at::cat({before.query, after.query}, 3), at::cat({before.key, -after.key}, 3));
  const double of = energy(before);
  return of > 0 ? std::sqrt(std::max(0.0, change) / of) : std::sqrt(std::max(0.0, change));
}

}  // namespace headshare
