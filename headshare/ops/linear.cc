#include "headshare/ops/linear.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "headshare/ops/product.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor as_matrix(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

class BlockedLinear : public torch::autograd::Function<BlockedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    context->save_for_backward({x, weight});
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    Tensor y = at::empty(sizes, x.options());
    if (bias.numel() > 0) {
      multiply_add_row(as_matrix(x), weight.t(), bias, as_matrix(y));
    } else {
      multiply(as_matrix(x), weight.t(), as_matrix(y));
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const Tensor dy = as_matrix(gradients[0]);
    Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0)) {
      dx = at::empty(x.sizes(), x.options());
      multiply(dy, weight, as_matrix(dx));
    }
    if (context->needs_input_grad(1)) {
      dweight = at::empty(weight.sizes(), weight.options());
      multiply(dy.t(), as_matrix(x), dweight);
    }
    if (context->needs_input_grad(2)) dbias = dy.sum(0);
    return {dx, dweight, dbias};
  }
};

}  // namespace

Tensor linear_map(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const bool autocast = at::autocast::is_autocast_enabled(x.device().type());
  const int64_t in = weight.size(1);
  const bool blocked = !autocast && x.size(-1) == in && in > 0 && weight.scalar_type() == x.scalar_type() &&
                       multiplies_in_blocks(x, x.numel() / in, in, weight.size(0));
  // A Function takes no undefined tensors: an empty bias is none.
  if (blocked) return BlockedLinear::apply(x, weight, bias.defined() ? bias : at::empty({0}, x.options()));
  return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

LinearImpl::LinearImpl(int64_t in, int64_t out, Bias with_bias, Init init) {
  weight = declare("weight", {out, in}, init);
  if (with_bias == Bias::kNo) return;
  const Role role = with_bias == Bias::kInert ? Role::kInert : Role::kLearned;
  const Tensor declared_bias = declare("bias", {out}, Init::constant(0), Decay::kNo, role);
  if (role == Role::kLearned) bias = declared_bias;
}

Tensor LinearImpl::forward(const Tensor& x) const { return linear_map(x, weight, bias); }

LayerNormImpl::LayerNormImpl(int64_t width, double eps) : eps_(eps) {
  weight = declare("weight", {width}, Init::constant(1), Decay::kNo);
  bias = declare("bias", {width}, Init::constant(0), Decay::kNo);
}

Tensor LayerNormImpl::forward(const Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, eps_); }

}  // namespace headshare
