#include <ATen/ATen.h>

#include <optional>

#include "headshare/models/blocks/feed_forward.h"
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
    case ActivationKind::kSilu:
      return std::nullopt;
  }
  return std::nullopt;
}

class PlainFeedForward : public FeedForwardLayer {
 public:
  explicit PlainFeedForward(const TransformerOptions& o)
      : activation_(o.activation),
        expand_(register_module("expand", feed_forward_expansion(o))),
        contract_(register_module("contract", feed_forward_contraction(o))) {}

  Tensor forward(const Tensor& x) const override {
    const Tensor inner = expand_->forward(x);
    const std::optional<GeluForm> form = gelu_form(activation_);
    return form ? contract_->forward_of_gelu(inner, *form) : contract_->forward(activate(activation_, inner));
  }

 private:
  ActivationKind activation_;
  Linear expand_, contract_;
};

}  // namespace

Tensor activate(ActivationKind kind, const Tensor& x) {
  const std::optional<GeluForm> form = gelu_form(kind);
  if (form) return gelu(x, *form);
  return kind == ActivationKind::kRelu ? at::relu(x) : at::silu(x);
}

FeedForward make_plain_feed_forward(const TransformerOptions& o) { return std::make_shared<PlainFeedForward>(o); }

}  // namespace headshare
