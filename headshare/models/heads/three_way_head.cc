#include "headshare/models/heads/three_way_head.h"

namespace headshare {

ThreeWayHeadImpl::ThreeWayHeadImpl(const EncoderOptions& o)
    : dropout_(o.dropout),
      output_(register_module(
          "output", Linear(o.attention.d_model, kThreeWayClasses, Bias::kYes, Init::normal(o.init_deviation)))) {}

Tensor ThreeWayHeadImpl::forward(const Tensor& hidden) const {
  return output_->forward(dropout(hidden, dropout_, *this));
}

}  // namespace headshare
