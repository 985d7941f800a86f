#include "headshare/ops/head_attention/head_dropout.h"

#include <ATen/ATen.h>

#include "headshare/kernels/tiles.h"
#include "headshare/ops/drawn_mask.h"
#include "headshare/ops/parallel.h"

namespace headshare {
namespace {

// Returns [B, heads, T, S] by the definition of dropout_mask.h.
Tensor cpu_factors(const kernels::DropoutMask& mask, int64_t B, int64_t heads, int64_t T, int64_t S,
                   const MaskPart& part) {
  const int64_t lanes = kernels::round_up(T, kernels::kLaneStep);
  const Tensor keep = at::empty({B, heads, S, lanes}, at::kFloat);
  torch_threads().run(B * heads, [&](int64_t i, int64_t) {
    kernels::tiles().keep_tile(keep.data_ptr<float>() + i * S * lanes, S, lanes, mask, i / heads, i % heads,
                               part.first_query, part.first_key);
  });
  return keep.slice(3, 0, T).transpose(2, 3);
}

}  // namespace

uint64_t HeadDropout::mask_key() const {
  constexpr uint64_t kPart = 0;
  return key ? stream_key(*key, kPart) : site->dropout_key(kPart);
}

kernels::DropoutMask dropout_mask_of(const HeadDropout& dropout) {
  if (!dropout.active()) return {};
  return kernels::dropout_mask(dropout.p, dropout.mask_key(), dropout.shared);
}

Tensor dropout_factors(const HeadDropout& dropout, int64_t heads, const Tensor& weights, const MaskPart& part) {
  const int64_t B = weights.size(0), T = weights.size(2), S = weights.size(3);
  const int64_t masks = dropout.shared ? 1 : heads;
  const kernels::DropoutMask mask = dropout_mask_of(dropout);
  if (weights.device().is_cpu()) return cpu_factors(mask, B, masks, T, S, part).to(weights.scalar_type());
  return drawn_weight_factors(mask, {B, masks, T, S, part.first_query, part.first_key}, weights.options());
}

}  // namespace headshare
