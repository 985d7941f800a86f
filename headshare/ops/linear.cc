#include "headshare/ops/linear.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "headshare/kernels/few_rows.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/packed_weights.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/product.h"
#include "headshare/ops/recompute.h"
#include "headshare/ops/second_derivative.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor as_matrix(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

bool under_autocast(const Tensor& x) { return at::autocast::is_autocast_enabled(x.device().type()); }

}  // namespace

// Computes in float32. x is float32 or bfloat16, and contiguous where its gelu is meant.
Tensor linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearCall& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  const Tensor wide = x.to(at::kFloat);
  const Tensor input = call.form ? gelu_values(wide, *call.form) : wide;
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  Tensor y = at::empty(sizes, input.options());
  if (bias.defined() && bias.numel() > 0) {
    multiply_add_row(as_matrix(input), weight.t(), bias, as_matrix(y), call.products);
  } else {
    multiply(as_matrix(input), weight.t(), as_matrix(y), Into::kReplace, call.products);
  }
  return y.to(call.type);
}

LinearGradients linear_backward(const Tensor& kept_x, const Tensor& weight, const Tensor& gradient,
                                const LinearCall& call, const LinearWants& wants) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  const Tensor x = kept_x.to(at::kFloat);
  const Tensor dy = as_matrix(gradient.to(at::kFloat));
  LinearGradients found;
  if (wants.x) {
    const Tensor dx = at::empty(x.sizes(), x.options());
    multiply(dy, weight, as_matrix(dx), Into::kReplace, call.products);
    if (call.form) gelu_gradient(x, dx, *call.form, dx);
    found.x = dx.to(kept_x.scalar_type());
  }
  if (wants.weight) {
    found.weight = at::empty(weight.sizes(), weight.options());
    if (call.form) {
      multiply_gelu(dy.t(), as_matrix(x), *call.form, found.weight, call.products);
    } else {
      multiply(dy.t(), as_matrix(x), found.weight, Into::kReplace, call.products);
    }
  }
  if (wants.bias) found.bias = dy.sum(0);
  return found;
}

// It takes matrices that are not tiny, on the CPU; float32, and under autocast, where products widen, x in bfloat16
// too.
bool takes_linear(const Tensor& x, const Tensor& weight) {
  if (x.is_meta()) return false;  // shapes alone: no device that autocast knows
  const int64_t in = weight.size(1);
  const bool narrow = x.scalar_type() == at::kBFloat16 && under_autocast(x);
  const bool known = (narrow || x.scalar_type() == at::kFloat) && weight.scalar_type() == at::kFloat;
  return known && (!under_autocast(x) || widens_products(x.device())) && x.size(-1) == in && in > 0 &&
         multiplies_in_blocks(weight, x.numel() / in, in, weight.size(0));
}

namespace {

// The backward pass may be outside of ComputeIn, so that the products of the forward pass are kept with it.
class BlockedLinear : public torch::autograd::Function<BlockedLinear> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        std::optional<GeluForm> form, at::ScalarType type) {
    const LinearCall call{.form = form, .type = type, .products = float_products_in_use()};
    context->save_for_backward({x, weight});
    context->saved_data["products"] = static_cast<int64_t>(call.products);
    if (form) context->saved_data["form"] = static_cast<int64_t>(*form);
    return linear_forward(x, weight, bias, call);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("a linear map of headshare");
    const variable_list saved = context->get_saved_variables();
    LinearCall call{.products = static_cast<FloatProducts>(context->saved_data.at("products").toInt())};
    const auto noted = context->saved_data.find("form");
    if (noted != context->saved_data.end()) call.form = static_cast<GeluForm>(noted->second.toInt());
    const LinearWants wants{.x = context->needs_input_grad(0),
                            .weight = context->needs_input_grad(1),
                            .bias = context->needs_input_grad(2)};
    const LinearGradients found = linear_backward(saved[0], saved[1], gradients[0], call, wants);
    return {found.x, found.weight, found.bias, Tensor(), Tensor()};
  }
};

// A Function takes no undefined tensors, so that an empty bias means none.
Tensor apply_blocked(const Tensor& x, const Tensor& weight, const Tensor& bias, std::optional<GeluForm> form) {
  const at::ScalarType type = under_autocast(x) ? at::autocast::get_autocast_dtype(x.device().type()) : at::kFloat;
  return BlockedLinear::apply(x, weight, bias.defined() ? bias : at::empty({0}, weight.options()), form, type);
}

// Returns what to take the packed weight from, or null.
PackedWeights* packed_for(const Tensor& x, const Tensor& weight) {
  PackedWeights* const packed = packed_weights_in_use();
  const bool fits = packed != nullptr && !at::GradMode::is_enabled() && !under_autocast(x) && takes_linear(x, weight);
  return fits ? packed : nullptr;
}

// Tells whether a product is of few rows, without a gradient: those of decoding.
bool has_few_rows(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const auto plain = [](const Tensor& one) { return one.scalar_type() == at::kFloat && one.device().is_cpu(); };
  const int64_t in = weight.size(1);
  if (at::GradMode::is_enabled() || will_run_again() || !plain(x) || !plain(weight) || under_autocast(x)) return false;
  return weight.stride(1) == 1 && in > 0 && x.size(-1) == in && x.numel() > 0 &&
         x.numel() / in <= kernels::kMostFewRows && (!bias.defined() || (plain(bias) && bias.is_contiguous()));
}

Tensor product_of_few_rows(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor rows = as_matrix(x.contiguous());
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  Tensor y = at::empty(sizes, x.options());
  const kernels::FewRows product = {.x = rows.const_data_ptr<float>(),
                                    .x_stride = rows.stride(0),
                                    .rows = rows.size(0),
                                    .depth = rows.size(1),
                                    .matrix = weight.const_data_ptr<float>(),
                                    .matrix_stride = weight.stride(0),
                                    .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                                    .y = y.mutable_data_ptr<float>(),
                                    .y_stride = weight.size(0)};
  // A thread costs more than it saves where its piece has fewer weights than these.
  constexpr int64_t kLeastPiece = 1 << 15;  // weights
  const int64_t outputs = weight.size(0);
  const int64_t pieces = std::clamp(weight.numel() / kLeastPiece, int64_t{1}, int64_t{at::get_num_threads()});
  in_torch_threads(pieces, [&](int64_t first, int64_t last) {
    kernels::multiply_few_rows(product, outputs * first / pieces, outputs * last / pieces);
  });
  return y;
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
  if (takes_linear(x, weight)) return apply_blocked(x, weight, bias, /*form=*/std::nullopt);
  if (has_few_rows(x, weight, bias)) return product_of_few_rows(x, weight, bias);
  return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

Tensor linear_of_gelu(const Tensor& x, GeluForm form, const Tensor& weight, const Tensor& bias) {
  if (packed_for(x, weight) == nullptr && takes_linear(x, weight)) {
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
