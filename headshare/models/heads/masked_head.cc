#include "headshare/models/heads/masked_head.h"

#include <ATen/ATen.h>

#include "headshare/base/options/ignored_target.h"
#include "headshare/models/blocks/block.h"
#include "headshare/ops/cross_entropy.h"

namespace headshare {

MaskedHeadImpl::MaskedHeadImpl(const EncoderOptions& o, const Tensor& token_embedding)
    : activation_(o.activation),
      dense_(register_module(
          "dense", Linear(o.attention.d_model, embedding_width(o), Bias::kYes, Init::normal(o.init_deviation)))),
      norm_(register_module("norm", embedding_norm(o))),
      embedding_(token_embedding) {
  if (!o.tie_embeddings) {
    embedding_ = declare("output_embedding", {o.vocabulary, embedding_width(o)}, Init::normal(o.init_deviation));
  }
  bias_ = declare("output_bias", {o.vocabulary}, Init::constant(0), Decay::kNo);
}

Tensor MaskedHeadImpl::transformed(const Tensor& hidden) const {
  return norm_->forward(activate(activation_, dense_->forward(hidden)));
}

Tensor MaskedHeadImpl::logits(const Tensor& hidden) const { return linear_map(transformed(hidden), embedding_, bias_); }

Tensor MaskedHeadImpl::loss_sum(const Tensor& rows, const Tensor& targets) const {
  return cross_entropy_sum(transformed(rows), embedding_, targets, kIgnoredTarget, bias_);
}

DistilledLoss MaskedHeadImpl::loss_sum(const Tensor& rows, const Tensor& targets, const TeacherRows& teacher,
                                       const Distillation& how) const {
  return distilled_cross_entropy_sum(transformed(rows), embedding_, targets, kIgnoredTarget, bias_, teacher, how);
}

TeacherRows MaskedHeadImpl::teacher_rows(const Tensor& rows) const {
  return {.hidden = transformed(rows), .embedding = embedding_.detach(), .bias = bias_.detach()};
}

Tensor MaskedHeadImpl::losses(const Tensor& rows, const Tensor& targets) const {
  return cross_entropy_rows(transformed(rows), embedding_, targets, kIgnoredTarget, bias_);
}

}  // namespace headshare
