#include "headshare/analyze/similarity.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/ops/head_attention/head_weights.h"

namespace headshare {
namespace {

HeadSimilarity to_similarity(const Tensor& matrix) {
  const Tensor values = matrix.to(at::kDouble).contiguous();
  const auto rows = values.accessor<double, 2>();
  HeadSimilarity made;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    made.emplace_back(rows[i].data(), rows[i].data() + rows.size(1));
  }
  return made;
}

// Returns the entropy of distributions along the last axis, in bits.
Tensor entropy(const Tensor& p) { return -at::xlogy(p, p).sum(-1, /*keepdim=*/false, at::kDouble) / std::log(2.0); }

}  // namespace

HeadSimilarity weight_similarity(const HeadSlices& slices) {
  const int64_t H = slices.query.size(1), d = slices.query.size(3);
  const auto sides = [](const Tensor& maps) { return maps.transpose(1, 2).flatten(2); };  // [F, E, H d]
  const Tensor queries = sides(slices.query), keys = sides(slices.key);
  // <P_h, P_g> is the sum of the products of both sides' d x d blocks; one head is done at a time, as d may be large.
  const Tensor products = at::empty({H, H}, at::kDouble);
  for (int64_t h = 0; h < H; ++h) {
    const Tensor query = at::adjoint(slices.query.select(1, h)).matmul(queries);  // [F, d, H d]
    const Tensor key = at::adjoint(slices.key.select(1, h)).matmul(keys);
    products[h].copy_(at::real(query * key.conj()).sum(at::IntArrayRef{0, 1}).view({H, d}).sum(1));
  }
  const Tensor norms = products.diagonal().sqrt();
  const Tensor scale = at::outer(norms, norms);
  const Tensor cosine = at::where(scale.gt(0), products / scale, at::zeros_like(products)).clamp(-1, 1);
  cosine.diagonal().fill_(1);
  return to_similarity((cosine + cosine.t()) / 2);  // symmetric to the last bit
}

Tensor attention_weights(const Attention& attention, const Tensor& x, const HeadMask& mask) {
  const PosedAttention asked = attention->pose(x, x, mask);
  return head_weights(asked.posed.problem, asked.mask);
}

void MapSimilarity::add(const Tensor& weights, int64_t first) {
  const Tensor maps = weights.slice(2, first);
  const int64_t B = maps.size(0), H = maps.size(1), T = maps.size(2);
  if (!divergences_.defined()) divergences_ = at::zeros({H, H}, at::kDouble);
  for (int64_t b = 0; b < B; ++b) {
    const Tensor own = entropy(maps[b]);  // [H, T]
    for (int64_t h = 1; h < H; ++h) {
      const Tensor others = maps[b].slice(0, 0, h);
      const Tensor between = entropy((others + maps[b][h]) / 2);  // [h, T]
      const Tensor divergence = between - (own.slice(0, 0, h) + own[h]) / 2;
      divergences_[h].slice(0, 0, h) += divergence.clamp(0, 1).sum(1);
    }
  }
  queries_ += B * T;
}

HeadSimilarity MapSimilarity::similarity() const {
  const Tensor both = divergences_ + divergences_.t();
  return to_similarity(1 - both / static_cast<double>(queries_));
}

}  // namespace headshare
