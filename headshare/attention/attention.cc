#include "headshare/attention/attention.h"

#include <ATen/ATen.h>

#include <bit>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {

std::vector<double> alibi_slopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  for (int64_t h = 1; h <= power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(power)));
  }
  for (int64_t h = 0; h < heads - power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(2 * h + 1) / static_cast<double>(2 * power)));
  }
  return slopes;
}

AttentionImpl::AttentionImpl(const AttentionOptions& options) {
  const AttentionOptions resolved = resolve(options);
  scheme_ = make_scheme(resolved);
  register_module("scheme", scheme_);
  if (resolved.alibi) alibi_slopes_ = at::tensor(alibi_slopes(resolved.heads), at::kDouble);
}

HeadMask AttentionImpl::own_mask(HeadMask mask, const Tensor& x) const {
  mask.window = scheme_->options().window.value_or(0);
  if (alibi_slopes_.defined()) mask.alibi_slopes = alibi_slopes_.to(x.options());
  return mask;
}

PosedAttention AttentionImpl::ask(const Tensor& x, const Tensor& queries, Memory memory, HeadMask mask) const {
  const AttentionOptions& options = scheme_->options();
  Posed posed = scheme_->posed(queries, std::move(memory), mask.visible_keys);
  posed.gate = scheme_->gate(x);
  return {.posed = std::move(posed),
          .mask = std::move(mask),
          .dropout = {.p = options.attention_dropout,
                      .site = this,
                      .shared = options.attention_dropout_mask == DropoutMaskKind::kShared}};
}

PosedAttention AttentionImpl::pose(const Tensor& x, const Tensor& y, const HeadMask& mask) const {
  const Tensor queries = scheme_->project_queries(x, /*first=*/y.size(1) - x.size(1));
  return ask(x, queries, scheme_->remember(y, /*first=*/0), own_mask(mask, x));
}

Tensor AttentionImpl::attend_and_merge(const PosedAttention& asked) const {
  const HeadProblem& problem = asked.posed.problem;
  const Tensor heads = attend(problem, asked.mask, asked.dropout);
  return scheme_->merge(asked.posed, heads, live_queries(problem, asked.mask));
}

Tensor AttentionImpl::self(const Tensor& x, const HeadMask& mask, KvCache* cache, Memory* lent) const {
  if (!observer_) return attend_to_itself(x, mask, cache, lent);
  const Tensor output = attend_to_itself(x, mask, cache, lent);
  observer_(x, mask, output);
  return output;
}

Tensor AttentionImpl::attend_to_itself(const Tensor& x, HeadMask mask, KvCache* cache, Memory* lent) const {
  const MemoryUse use = scheme_->options().memory;
  if (use == MemoryUse::kBorrowed) {
    HS_CHECK(lent != nullptr && !lent->empty() && cache == nullptr,
             "this layer reads what a layer below it remembers; run the blocks of the model, and not the layer alone");
    const Tensor queries = scheme_->project_queries(x, /*first=*/lent->front().size(2) - x.size(1));
    return attend_and_merge(ask(x, queries, *lent, own_mask(std::move(mask), x)));
  }
  const int64_t first = cache == nullptr ? 0 : cache->length();
  const Tensor queries = scheme_->project_queries(x, first);
  Memory memory = scheme_->remember(x, first);
  if (cache != nullptr) memory = cache->append(memory);
  if (use == MemoryUse::kLent && lent != nullptr) *lent = memory;
  return attend_and_merge(ask(x, queries, std::move(memory), own_mask(std::move(mask), x)));
}

Tensor AttentionImpl::cross(const Tensor& x, const Tensor& y, HeadMask mask, KvCache* cache) const {
  HS_CHECK(!mask.causal,
           "cross-attention has no causal order: its queries see the other sequence; leave the causal mask out");
  HS_CHECK(!scheme_->options().rotary && !scheme_->options().alibi,
           "rotary and ALiBi positions order one sequence; cross-attention has two");
  HS_CHECK(!scheme_->options().window, "a local window is about distances in one sequence; cross-attention has two");
  Memory memory;
  if (cache != nullptr && !cache->empty()) {
    memory = cache->contents();
  } else {
    memory = scheme_->remember(y, /*first=*/0);
    if (cache != nullptr) cache->store(memory);
  }
  const int64_t sentences = memory.front().size(0);
  HS_CHECK(sentences > 0 && x.size(0) % sentences == 0, "the decoder's batch ", x.size(0),
           " must be a multiple of the encoder's ", sentences);
  // Queries do not see each other, so the beams of a sentence are simply more queries of it.
  const Tensor folded = x.reshape({sentences, x.size(0) / sentences * x.size(1), x.size(2)});
  const Tensor queries = scheme_->project_queries(folded, /*first=*/0);
  const Tensor output = attend_and_merge(ask(folded, queries, std::move(memory), mask)).view(x.sizes());
  if (observer_) observer_(x, mask, output);
  return output;
}

}  // namespace headshare
