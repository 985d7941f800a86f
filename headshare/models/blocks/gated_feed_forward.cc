#include <ATen/ATen.h>

#include "headshare/models/blocks/feed_forward.h"
#include "headshare/ops/gelu.h"

namespace headshare {
namespace {

class GatedFeedForward : public FeedForwardLayer {
 public:
  explicit GatedFeedForward(const TransformerOptions& o)
      : kind_(o.feed_forward),
        gate_(register_module("gate", feed_forward_expansion(o))),
        expand_(register_module("expand", feed_forward_expansion(o))),
        contract_(register_module("contract", feed_forward_contraction(o))) {}

  Tensor forward(const Tensor& x) const override {
    return contract_->forward(activated(gate_->forward(x)) * expand_->forward(x));
  }

 private:
  Tensor activated(const Tensor& gate) const {
    if (kind_ == FeedForwardKind::kSwiglu) return at::silu(gate);
    return gelu(gate, kind_ == FeedForwardKind::kGeglu ? GeluForm::kTanh : GeluForm::kErf);
  }

  FeedForwardKind kind_;
  Linear gate_, expand_, contract_;
};

}  // namespace

FeedForward make_gated_feed_forward(const TransformerOptions& o) { return std::make_shared<GatedFeedForward>(o); }

}  // namespace headshare
