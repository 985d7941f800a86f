#include "headshare/models/block.h"

#include <ATen/ATen.h>

#include <optional>

#include "headshare/ops/gelu.h"

namespace headshare {
namespace {

std::optional<GeluForm> gelu_form(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kGeluTanh:
      return GeluForm::kTanh;
    case ActivationKind::kGeluErf:
      return GeluForm::kErf;
    case ActivationKind::kRelu:
      return std::nullopt;
  }
  return std::nullopt;
}

Bias bias_of(bool wanted) { return wanted ? Bias::kYes : Bias::kNo; }

}  // namespace

Tensor activate(ActivationKind kind, const Tensor& x) {
  const std::optional<GeluForm> form = gelu_form(kind);
  return form ? gelu(x, *form) : at::relu(x);
}

FeedForwardImpl::FeedForwardImpl(const TransformerOptions& o)
    : activation_(o.activation),
      expand_(register_module("expand", Linear(o.attention.d_model, *o.feed_forward_width, bias_of(o.feed_forward_bias),
                                               Init::normal(o.init_deviation)))),
      contract_(
          register_module("contract", Linear(*o.feed_forward_width, o.attention.d_model, bias_of(o.feed_forward_bias),
                                             Init::normal(o.attention.output_deviation)))) {}

Tensor FeedForwardImpl::forward(const Tensor& x) const {
  const Tensor inner = expand_->forward(x);
  const std::optional<GeluForm> form = gelu_form(activation_);
  return form ? contract_->forward_of_gelu(inner, *form) : contract_->forward(activate(activation_, inner));
}

BlockImpl::BlockImpl(const TransformerOptions& o, NormPlacement norms)
    : attention(register_module("attention", Attention(o.attention))),
      norms_(norms),
      dropout_(o.dropout),
      attention_norm_(register_module("attention_norm", LayerNorm(o.attention.d_model, o.norm_epsilon))),
      feed_forward_norm_(register_module("feed_forward_norm", LayerNorm(o.attention.d_model, o.norm_epsilon))),
      feed_forward_(register_module("feed_forward", FeedForward(o))),
      attention_residual_(register_module("attention_residual", std::make_shared<Layer>())),
      feed_forward_residual_(register_module("feed_forward_residual", std::make_shared<Layer>())) {}

Tensor BlockImpl::normed_input(const LayerNorm& norm, const Tensor& x) const {
  return norms_ == NormPlacement::kBefore ? norm->forward(x) : x;
}

Tensor BlockImpl::normed_sum(const LayerNorm& norm, const Tensor& sum) const {
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
