#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention_backends.h"

namespace headshare {
namespace {

std::vector<std::string> why_not_sdpa(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons;
  if (dropout.active()) {
    reasons.emplace_back(
        "with dropout libtorch falls back to an unfused form and draws its masks from one global stream");
  }
  if (p.query.size(3) != p.value.size(3)) {
    reasons.push_back(join_text("key width ", p.query.size(3), " and value width ", p.value.size(3), " differ"));
  }
  if (p.key.size(1) != p.value.size(1)) {
    reasons.push_back(join_text("keys have ", p.key.size(1), " heads and values ", p.value.size(1)));
  }
  if (p.key_bias.defined()) reasons.emplace_back("a bias per head and key would need a mask of [T, S] per head");
  if (mask.alibi_slopes.defined()) reasons.emplace_back("ALiBi would need a mask of [T, S] per head");
  return reasons;
}

Tensor run_sdpa(const HeadProblem& p, const HeadMask& mask, const HeadDropout&) {
  const int64_t T = p.query.size(2);
  const int64_t S = p.key.size(2);
  // c_h[j] = shift_h . k_j is the same as a query moved by shift_h.
  const Tensor query = p.query_shift.defined() ? p.query + p.query_shift.unsqueeze(1)  // [B, H, T, Dk]
                                               : expand_heads(p.query, p.heads);
  const bool square_causal = mask.causal && T == S && !mask.visible_keys.defined();
  std::optional<Tensor> pairs;
  const Tensor live = live_queries(p, mask);
  Tensor dead;
  if (live.defined()) dead = live.logical_not().view({live.size(0), 1, -1, 1});
  if (!square_causal) {
    const Tensor visible = visible_pairs(p, mask);
    if (visible.defined()) pairs = dead.defined() ? visible.logical_or(dead) : visible;
  }
  if (pairs) pairs = pairs->expand({p.query.size(0), 1, T, S});
  const bool grouped = p.key.size(1) != p.heads;
  const Tensor heads = at::scaled_dot_product_attention(query, p.key, p.value, pairs, /*dropout_p=*/0.0, square_causal,
                                                        p.scale, /*enable_gqa=*/grouped);
  return dead.defined() ? heads.masked_fill(dead, 0.0) : heads;
}

}  // namespace

const HeadBackend kSdpaBackend = {"sdpa", "libtorch's fused scaled_dot_product_attention", why_not_sdpa, run_sdpa};

}  // namespace headshare
