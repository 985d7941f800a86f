// Makes the decoding kernel of headshare/kernels/attention.h a backend for a few new queries.
#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/kernel_glue.h"

namespace headshare {
namespace kernel_glue {
namespace {

// More queries fill the tiles of the general kernels; `headshare bench attention --queries 5 --masks full` times both
// sides of this bound.
int64_t most_new_queries(const HeadProblem& p) {
  const int64_t sharing = p.heads / p.key.size(1);
  return sharing == 1 ? 4 : std::clamp<int64_t>(48 / sharing, 4, 8);
}

std::vector<std::string> why_not_decode(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons = why_not_blocks(p, dropout, type_of(p) == at::kBFloat16);
  const int64_t queries = p.query.size(2);
  if (queries > most_new_queries(p)) {
    reasons.push_back(join_text("it takes up to ", most_new_queries(p), " new queries, not ", queries));
  }
  // A sequence that attends to itself must give the same bits with gradients and without.
  if (queries > 1 && queries >= p.key.size(2)) {
    reasons.push_back(join_text("several queries, ", queries, ", must be fewer than the ", p.key.size(2), " keys"));
  }
  if (queries > 1 && (mask.causal || mask.alibi_slopes.defined())) {
    reasons.push_back(join_text("of ", queries, " queries none may come before another (causal, ALiBi)"));
  }
  if (queries > 1 && has_window(p, mask)) reasons.emplace_back(kNoWindows);
  if (dropout.active()) reasons.emplace_back("it has no dropout");
  return reasons;
}

// A single query stands at the last key, so its window hides only the first keys.
HeadProblem within_window(const HeadProblem& p, HeadMask* mask) {
  HeadProblem near = p;
  if (!has_window(p, *mask)) return near;
  const int64_t begin = p.key.size(2) - mask->window - 1;
  near.key = p.key.slice(2, begin);
  near.value = p.value.slice(2, begin);
  if (p.key_bias.defined()) near.key_bias = p.key_bias.slice(2, begin);
  if (mask->visible_keys.defined()) mask->visible_keys = mask->visible_keys.slice(1, begin);
  return near;
}

Tensor run_decode(const HeadProblem& whole, const HeadMask& whole_mask, const HeadDropout& dropout) {
  HeadMask mask = whole_mask;
  const HeadProblem p = within_window(whole, &mask);
  // For few queries it is cheaper to shift them than to pass over the keys for a bias.
  HeadProblem shifted = p;
  shifted.query_shift = Tensor();
  if (p.query_shift.defined()) shifted.query = p.query + p.query_shift.unsqueeze(1);  // [B, H, T, Dk]
  const at::ScalarType type = type_of(p);
  const Tensor query = with_rows(shifted.query.to(type));
  const Tensor key = with_rows(p.key.to(type));
  const Tensor value = with_rows(p.value.to(type));
  const KernelInputs in{query, key, value, total_key_bias(shifted), float_sinks(p)};
  const Rule rule = rule_of(p, mask, dropout);
  const kernels::AttentionSizes s = sizes_of(query, key, value, p.heads);
  const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, query.options());
  by_type(query, [&](auto element) {
    using T = decltype(element);
    kernels::attention_decode<T>(s, rule.with(in), inputs<T>(query, key, value), view<T>(out), machine());
  });
  return out;
}

Precision decode_products(const HeadProblem& p) {
  return type_of(p) == at::kBFloat16 ? Precision::kBf16 : Precision::kFp32;
}

}  // namespace
}  // namespace kernel_glue

const HeadBackend kDecodeBackend = {.name = "decode",
                                    .summary = "headshare's kernel for a few new queries against a cache",
                                    .device = at::kCPU,
                                    .has_gradients = false,
                                    .products = kernel_glue::decode_products,
                                    .objections = kernel_glue::why_not_decode,
                                    .run = kernel_glue::run_decode};

}  // namespace headshare
