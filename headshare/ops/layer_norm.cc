#include <ATen/ATen.h>

#include "headshare/ops/norm.h"

namespace headshare {

LayerNorm::LayerNorm(int64_t width, double eps) : eps_(eps) {
  weight = declare("weight", {width}, Init::constant(1), Decay::kNo);
  bias = declare("bias", {width}, Init::constant(0), Decay::kNo);
}

Tensor LayerNorm::forward(const Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, eps_); }

}  // namespace headshare
