#include "headshare/models/heads/task_head.h"

namespace headshare {
namespace {

int64_t width_read(const EncoderOptions& o) {
  return (o.task_head.kind == TaskHeadKind::kWords ? 3 : 1) * o.attention.d_model;
}

}  // namespace

TaskHeadImpl::TaskHeadImpl(const EncoderOptions& o)
    : dropout_(o.task_head.kind == TaskHeadKind::kToken ? 0 : o.dropout),
      output_(register_module(
          "output", Linear(width_read(o), o.task_head.outputs, Bias::kYes, Init::normal(o.init_deviation)))) {}

Tensor TaskHeadImpl::forward(const Tensor& x) const { return output_->forward(dropout(x, dropout_, *this)); }

}  // namespace headshare
