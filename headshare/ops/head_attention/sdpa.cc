#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"

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
  if (p.sinks.defined()) reasons.emplace_back("it has no sinks");
  if (has_window(p, mask) && p.query.size(2) > kQueryBlock && p.query.device().is_cpu()) {
    reasons.emplace_back(
        "its mask leaves nothing out: on the CPU, blocks of queries read the keys of their windows alone");
  }
  if (mask.alibi_slopes.defined()) reasons.emplace_back("ALiBi would need a mask of [T, S] per head");
  return reasons;
}

// These are the arguments of one call of scaled_dot_product_attention.
struct SdpaCall {
  Tensor query;                 // [B, H, T, Dk]
  std::optional<Tensor> pairs;  // bool [B, 1, T, S], true where a query sees a key
  Tensor dead;                  // bool, as dead_rows()
  bool causal;
  bool grouped;
};

SdpaCall sdpa_call(const HeadProblem& p, const HeadMask& mask) {
  const int64_t T = p.query.size(2);
  const int64_t S = p.key.size(2);
  SdpaCall call;
  // c_h[j] = shift_h . k_j is the same as a query moved by shift_h.
  call.query = p.query_shift.defined() ? p.query + p.query_shift.unsqueeze(1) : expand_heads(p.query, p.heads);
  call.dead = dead_rows(live_queries(p, mask));
  call.causal = mask.causal && T == S && !mask.visible_keys.defined() &&
                !has_window(p, mask);  // its own mask is aligned top-left
  call.grouped = p.key.size(1) != p.heads;
  if (call.causal) return call;
  const Tensor visible = visible_pairs(p, mask, S - T);
  if (!visible.defined()) return call;
  // The rule is that of the reference: queries that see nothing see everything, and are put to zero afterwards.
  call.pairs = (call.dead.defined() ? visible.logical_or(call.dead) : visible).expand({p.query.size(0), 1, T, S});
  return call;
}

Tensor run_sdpa(const HeadProblem& p, const HeadMask& mask, const HeadDropout&) {
  const SdpaCall call = sdpa_call(p, mask);
  const Tensor heads = at::scaled_dot_product_attention(call.query, p.key, p.value, call.pairs, /*dropout_p=*/0.0,
                                                        call.causal, p.scale, call.grouped);
  return call.dead.defined() ? heads.masked_fill(call.dead, 0.0) : heads;
}

bool sdpa_is_fused(const HeadProblem& p, const HeadMask& mask) {
  const SdpaCall call = sdpa_call(p, mask);
  const int64_t choice = at::_fused_sdp_choice(call.query, p.key, p.value, call.pairs, /*dropout_p=*/0.0, call.causal,
                                               p.scale, call.grouped);
  return choice != static_cast<int64_t>(at::SDPBackend::math);
}

}  // namespace

const HeadBackend kSdpaBackend = {.name = "sdpa",
                                  .summary = "libtorch's fused scaled_dot_product_attention",
                                  .products = libtorch_products,
                                  .is_fused = sdpa_is_fused,
                                  .objections = why_not_sdpa,
                                  .run = run_sdpa};

}  // namespace headshare
