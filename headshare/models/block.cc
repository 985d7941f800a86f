#include "headshare/models/block.h"

#include <ATen/ATen.h>

namespace headshare {

Norm block_norm(const TransformerOptions& o) { return make_norm(o.norm, o.attention.d_model, o.norm_epsilon); }

BlockImpl::BlockImpl(const TransformerOptions& o, NormPlacement norms)
    : attention(register_module("attention", Attention(o.attention))),
      norms_(norms),
      dropout_(o.dropout),
      attention_norm_(register_module("attention_norm", block_norm(o))),
      feed_forward_norm_(register_module("feed_forward_norm", block_norm(o))),
      feed_forward_(register_module("feed_forward", make_feed_forward(o))),
      attention_residual_(register_module("attention_residual", std::make_shared<Layer>())),
      feed_forward_residual_(register_module("feed_forward_residual", std::make_shared<Layer>())) {}

Tensor BlockImpl::normed_input(const Norm& norm, const Tensor& x) const {
  return norms_ == NormPlacement::kBefore ? norm->forward(x) : x;
}

Tensor BlockImpl::normed_sum(const Norm& norm, const Tensor& sum) const {
  return norms_ == NormPlacement::kAfter ? norm->forward(sum) : sum;
}

Tensor BlockImpl::attended(const Tensor& x, const HeadMask& mask, KvCache* cache) const {
  return attention->self(normed_input(attention_norm_, x), mask, cache);
}

Tensor BlockImpl::after_attention(const Tensor& x, const Tensor& attended) const {
  const Tensor middle = normed_sum(attention_norm_, x + dropout(attended, dropout_, *attention_residual_));
  const Tensor changed = feed_forward_->forward(normed_input(feed_forward_norm_, middle));
  return normed_sum(feed_forward_norm_, middle + dropout(changed, dropout_, *feed_forward_residual_));
}

Tensor BlockImpl::forward(const Tensor& x, const HeadMask& mask, KvCache* cache) const {
  return after_attention(x, attended(x, mask, cache));
}

Tensor BlockImpl::forward_at(const Tensor& places, const Tensor& x, const HeadMask& mask) const {
  const auto at_places = [&](const Tensor& all) { return all.flatten(0, 1).index_select(0, places); };
  return after_attention(at_places(x), at_places(attended(x, mask, /*cache=*/nullptr)));
}

}  // namespace headshare
