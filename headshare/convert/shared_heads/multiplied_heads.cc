#include "headshare/convert/shared_heads/multiplied_heads.h"

#include <ATen/ATen.h>

#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

constexpr int kRoundsOfMultiplied = 60;

// [F, H, E] -> [F, H]. Heads of 0 count a little, so that what is divided by their lengths stays small.
Tensor squared_lengths(const Tensor& x) {
  constexpr double kLeastShare = 1e-24;  // of the largest
  const Tensor lengths = at::real(x * x.conj()).sum(-1);
  return at::maximum(lengths, kLeastShare * lengths.amax(-1, /*keepdim=*/true)).clamp_min(kLeastSize);
}

// A head's maps from the shared one: both parts, each times its factor. [F, E], [F, H] -> [F, H, E].
Tensor heads_of(const Tensor& map, const Tensor& factors) {
  const auto part = [](const Tensor& m, const Tensor& f) { return f.unsqueeze(2) * m.unsqueeze(1); };
  return at::complex(part(at::real(map), at::real(factors)), part(at::imag(map), at::imag(factors)));
}

// The best x [F, E] and factors f [F, H] with f_h x close to `targets` [F, H, E], whose squared errors weigh `weights`
// [F, H]. The factors' mean square is 1.
std::pair<Tensor, Tensor> rank_one(const Tensor& targets, const Tensor& weights) {
  const Tensor root = weights.sqrt().unsqueeze(2);
  const Tensor rows = targets * root;  // [F, H, E]
  const Tensor vectors = std::get<1>(at::linalg_eigh(rows.matmul(rows.mT())));
  const Tensor leading = vectors.slice(2, vectors.size(2) - 1);  // [F, H, 1]
  const Tensor map = leading.mT().matmul(rows).squeeze(1);       // [F, E]
  Tensor factors = (leading / root).squeeze(2);                  // [F, H]
  Tensor size = factors.square().mean(1, /*keepdim=*/true).sqrt();
  size = at::where(factors.sum(1, /*keepdim=*/true) < 0, -size, size);
  return {map * size, factors / size};
}

// One side given the other: heads `maps` [F, H, E], whose other sides are `other` and are now held as `fixed`.
void improve(const Tensor& maps, const Tensor& other, const Tensor& fixed, Tensor* map, Tensor* factors) {
  const Tensor weights = squared_lengths(fixed);
  const Tensor part = (other.conj() * fixed).sum(2) / weights;  // of each head: [F, H]
  const Tensor targets = maps * part.unsqueeze(2);
  const auto [real, real_factors] = rank_one(at::real(targets), weights);
  const auto [imaginary, imaginary_factors] = rank_one(at::imag(targets), weights);
  *map = at::complex(real.contiguous(), imaginary.contiguous());
  *factors = at::complex(real_factors.contiguous(), imaginary_factors.contiguous());
}

}  // namespace

MultipliedHeads multiplied_heads(const HeadSlices& slices) {
  const Tensor a = slices.query.squeeze(3);  // [F, H, E]
  const Tensor b = slices.key.squeeze(3);
  MultipliedHeads result;
  Tensor key = b;  // every head's own, to begin with
  for (int i = 0; i < kRoundsOfMultiplied; ++i) {
    improve(a, b, key, &result.query, &result.query_factors);
    const Tensor query = heads_of(result.query, result.query_factors);
    improve(b, a, query, &result.key, &result.key_factors);
    key = heads_of(result.key, result.key_factors);
  }
  return result;
}

}  // namespace headshare
