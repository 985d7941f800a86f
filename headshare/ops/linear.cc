#include "headshare/ops/linear.h"

#include <ATen/ATen.h>

namespace headshare {

LinearImpl::LinearImpl(int64_t in, int64_t out, Bias with_bias, Init init) {
  weight = declare("weight", {out, in}, init);
  if (with_bias == Bias::kNo) return;
  const Role role = with_bias == Bias::kInert ? Role::kInert : Role::kLearned;
  const Tensor declared_bias = declare("bias", {out}, Init::constant(0), Decay::kNo, role);
  if (role == Role::kLearned) bias = declared_bias;
}

Tensor LinearImpl::forward(const Tensor& x) const {
  return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

LayerNormImpl::LayerNormImpl(int64_t width, double eps) : eps_(eps) {
  weight = declare("weight", {width}, Init::constant(1), Decay::kNo);
  bias = declare("bias", {width}, Init::constant(0), Decay::kNo);
}

Tensor LayerNormImpl::forward(const Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, eps_); }

}  // namespace headshare
