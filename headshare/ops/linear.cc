#include "headshare/ops/linear.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "headshare/ops/packed_weights.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/product.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor as_matrix(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// Computes x W^T + b, of gelu(x) where `form` says so, in float32. x is float32 or bfloat16 and kept as it is; y is of
// the type `type`.
class BlockedLinear : public torch::autograd::Function<BlockedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        std::optional<GeluForm> form, at::ScalarType type) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
    context->save_for_backward({x, weight});
    const FloatProducts products = float_products_in_use();
    context->saved_data["products"] = static_cast<int64_t>(products);  // the backward pass may be outside of ComputeIn
    if (form) context->saved_data["form"] = static_cast<int64_t>(*form);
    const Tensor wide = x.to(at::kFloat);
    const Tensor input = form ? gelu_values(wide, *form) : wide;
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    Tensor y = at::empty(sizes, input.options());
    if (bias.numel() > 0) {
      multiply_add_row(as_matrix(input), weight.t(), bias, as_matrix(y), products);
    } else {
      multiply(as_matrix(input), weight.t(), as_matrix(y), Into::kReplace, products);
    }
    return y.to(type);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
    const variable_list saved = context->get_saved_variables();
    const at::ScalarType type = saved[0].scalar_type();
    const Tensor x = saved[0].to(at::kFloat);
    const Tensor& weight = saved[1];
    const Tensor dy = as_matrix(gradients[0].to(at::kFloat));
    const auto products = static_cast<FloatProducts>(context->saved_data.at("products").toInt());
    const auto noted = context->saved_data.find("form");
    const bool of_gelu = noted != context->saved_data.end();
    const auto form = of_gelu ? static_cast<GeluForm>(noted->second.toInt()) : GeluForm{};
    Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0)) {
      dx = at::empty(x.sizes(), x.options());
      multiply(dy, weight, as_matrix(dx), Into::kReplace, products);
      if (of_gelu) gelu_gradient(x, dx, form, dx);
      dx = dx.to(type);
    }
    if (context->needs_input_grad(1)) {
      dweight = at::empty(weight.sizes(), weight.options());
      if (of_gelu) {
        multiply_gelu(dy.t(), as_matrix(x), form, dweight, products);
      } else {
        multiply(dy.t(), as_matrix(x), dweight, Into::kReplace, products);
      }
    }
    if (context->needs_input_grad(2)) dbias = dy.sum(0);
    return {dx, dweight, dbias, Tensor(), Tensor()};
  }
};

bool under_autocast(const Tensor& x) { return at::autocast::is_autocast_enabled(x.device().type()); }

// Tells whether BlockedLinear takes x and weight: matrices that are not tiny, on the CPU; float32, and under autocast,
// where products widen, x in bfloat16 too.
bool is_blocked(const Tensor& x, const Tensor& weight) {
  if (x.is_meta()) return false;  // shapes alone: no device that autocast knows
  const int64_t in = weight.size(1);
  const bool narrow = x.scalar_type() == at::kBFloat16 && under_autocast(x);
  const bool known = (narrow || x.scalar_type() == at::kFloat) && weight.scalar_type() == at::kFloat;
  return known && (!under_autocast(x) || widens_products(x.device())) && x.size(-1) == in && in > 0 &&
         multiplies_in_blocks(weight, x.numel() / in, in, weight.size(0));
}

// A Function takes no undefined tensors, so that an empty bias means none.
Tensor apply_blocked(const Tensor& x, const Tensor& weight, const Tensor& bias, std::optional<GeluForm> form) {
  const at::ScalarType type = under_autocast(x) ? at::autocast::get_autocast_dtype(x.device().type()) : at::kFloat;
  return BlockedLinear::apply(x, weight, bias.defined() ? bias : at::empty({0}, weight.options()), form, type);
}

// Returns what to take the packed weight from, or null.
PackedWeights* packed_for(const Tensor& x, const Tensor& weight) {
  PackedWeights* const packed = packed_weights_in_use();
  const bool fits = packed != nullptr && !at::GradMode::is_enabled() && !under_autocast(x) && is_blocked(x, weight);
  return fits ? packed : nullptr;
}

Tensor packed_product(const Tensor& x, const Tensor& panels, const Tensor& weight, const Tensor& bias) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  Tensor y = at::empty(sizes, x.options());
  multiply_packed(as_matrix(x.contiguous()), panels, bias, as_matrix(y));
  return y;
}

}  // namespace

Tensor linear_map(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (PackedWeights* const packed = packed_for(x, weight)) {
    return packed_product(x, packed->panels(weight), weight, bias);
  }
  if (is_blocked(x, weight)) return apply_blocked(x, weight, bias, /*form=*/std::nullopt);
  return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

Tensor linear_of_gelu(const Tensor& x, GeluForm form, const Tensor& weight, const Tensor& bias) {
  if (packed_for(x, weight) == nullptr && is_blocked(x, weight)) {
    return apply_blocked(x.contiguous(), weight, bias, form);
  }
  return linear_map(gelu(x, form), weight, bias);
}

LinearImpl::LinearImpl(int64_t in, int64_t out, Bias with_bias, Init init) {
  weight = declare("weight", {out, in}, init);
  if (with_bias == Bias::kNo) return;
  const Role role = with_bias == Bias::kInert ? Role::kInert : Role::kLearned;
  const Tensor declared_bias = declare("bias", {out}, Init::constant(0), Decay::kNo, role);
  if (role == Role::kLearned) bias = declared_bias;
}

Tensor LinearImpl::forward(const Tensor& x) const { return linear_map(x, weight, bias); }

Tensor LinearImpl::forward_of_gelu(const Tensor& x, GeluForm form) const {
  return linear_of_gelu(x, form, weight, bias);
}

}  // namespace headshare
