#include "headshare/models/blocks/block.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/made_again.h"
#include "headshare/ops/precision.h"

namespace headshare {

Norm block_norm(const TransformerOptions& o) { return make_norm(o.norm, o.attention.d_model, o.norm_epsilon); }

Norm embedding_norm(const TransformerOptions& o) { return make_norm(o.norm, embedding_width(o), o.norm_epsilon); }

BlockImpl::BlockImpl(const TransformerOptions& o, std::optional<AttentionOptions> cross)
    : attention(register_module("attention", Attention(o.attention))),
      norms_(o.norms),
      dropout_(o.dropout),
      attention_norm_(norms_ == NormPlacement::kBeforeExceptFirst ? Norm()
                                                                  : register_module("attention_norm", block_norm(o))),
      feed_forward_norm_(register_module("feed_forward_norm", block_norm(o))),
      feed_forward_(register_module("feed_forward", make_feed_forward(o))),
      attention_residual_(register_module("attention_residual", std::make_shared<Layer>())),
      feed_forward_residual_(register_module("feed_forward_residual", std::make_shared<Layer>())) {
  if (!cross) return;
  cross_attention = register_module("cross_attention", Attention(*cross));
  cross_norm_ = register_module("cross_attention_norm", block_norm(o));
  cross_residual_ = register_module("cross_attention_residual", std::make_shared<Layer>());
}

// Each projection that reads x would convert it for itself where products are bfloat16. A norm before a sub-layer is
// computed again for the gradient: it costs little, and would be kept as long as x. A scheme may remember what it read,
// as it is: other layers that read this memory need it before the gradient does.
template <class SubLayer>
Tensor BlockImpl::of_normed(const Norm& norm, const Tensor& x, const SubLayer& sub_layer, const Memory* lent) const {
  const at::ScalarType type = product_type(x);
  if (norms_ == NormPlacement::kAfter || norm == nullptr) return sub_layer(x.to(type));
  const auto read_of = [norm, type](const Tensor& from) { return norm->forward(from).to(type); };
  const Tensor read = read_of(x);
  const Tensor result = sub_layer(read);
  const auto is_read = [&](const Tensor& part) { return part.is_alias_of(read); };
  if (lent != nullptr && std::any_of(lent->begin(), lent->end(), is_read)) return result;
  if (!at::GradMode::is_enabled()) return result;  // decoding does not gather parameters for each token
  std::vector<Tensor> again_read = norm->parameters();
  again_read.push_back(x);
  return made_again(
      read, again_read, [read_of, kept = x.detach()] { return read_of(kept); }, result);
}

Tensor BlockImpl::residual(const Tensor& x, const Tensor& change, const Norm& norm, const Layer& site) const {
  const Tensor sum = x + dropout(change, dropout_, site);
  return norms_ == NormPlacement::kAfter ? norm->forward(sum) : sum;
}

Tensor BlockImpl::attended(const Tensor& x, const HeadMask& mask, KvCache* cache, Memory* lent) const {
  return of_normed(
      attention_norm_, x, [&](const Tensor& normed) { return attention->self(normed, mask, cache, lent); }, lent);
}

Tensor BlockImpl::with_cross(const Tensor& x, const CrossInput& cross) const {
  const Tensor change = of_normed(cross_norm_, x, [&](const Tensor& normed) {
    return cross_attention->cross(normed, cross.memory, {.visible_keys = cross.visible_keys}, cross.cache);
  });
  return residual(x, change, cross_norm_, *cross_residual_);
}

Tensor BlockImpl::with_feed_forward(const Tensor& x) const {
  const Tensor change =
      of_normed(feed_forward_norm_, x, [&](const Tensor& normed) { return feed_forward_->forward(normed); });
  return residual(x, change, feed_forward_norm_, *feed_forward_residual_);
}

Tensor BlockImpl::forward(const Tensor& x, const HeadMask& mask, KvCache* cache, const CrossInput* cross,
                          Memory* lent) const {
  HS_CHECK((cross == nullptr) == cross_attention.is_empty(),
           "a block reads another sequence exactly where it has cross-attention");
  Tensor y = residual(x, attended(x, mask, cache, lent), attention_norm_, *attention_residual_);
  if (cross != nullptr) y = with_cross(y, *cross);
  return with_feed_forward(y);
}

Tensor BlockImpl::forward_at(const Tensor& places, const Tensor& x, const HeadMask& mask, Memory* lent) const {
  HS_CHECK(cross_attention.is_empty(), "only a block without cross-attention answers at some places alone");
  const auto at_places = [&](const Tensor& all) { return all.flatten(0, 1).index_select(0, places); };
  const Tensor y = residual(at_places(x), at_places(attended(x, mask, /*cache=*/nullptr, lent)), attention_norm_,
                            *attention_residual_);
  return with_feed_forward(y);
}

}  // namespace headshare
