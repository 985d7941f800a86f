// The linear operation.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/util/accumulate.h>

#include "headshare/base/error.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/plain_gradients.h"
#include "headshare/torch_library/glue.h"

namespace headshare::torch_library {
namespace {

using Form = std::optional<GeluForm>;

Form form_of(const std::optional<std::string>& gelu) { return gelu ? Form(gelu_form(*gelu)) : std::nullopt; }

void check_linear(const Tensor& x, const Tensor& weight) {
  check_floating("a linear map", x);
  check_floating("a linear map", weight);
  check_same_device("a linear map", x, weight);
  HS_CHECK(x.dim() > 0 && weight.dim() == 2 && x.size(-1) == weight.size(1),
           "a linear map takes rows [.., in] and a weight [out, in], not ", x.sizes(), " and ", weight.sizes());
  HS_CHECK(x.scalar_type() == weight.scalar_type(), "rows and weight of a linear map must be of one type, not ",
           x.scalar_type(), " and ", weight.scalar_type());
}

Tensor plain_linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias, const Form& form) {
  return at::linear(form ? at::gelu(x, *form == GeluForm::kTanh ? "tanh" : "none") : x, weight, bias);
}

Tensor linear_op(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                 std::optional<std::string> gelu) {
  check_linear(x, weight);
  if (bias) {
    check_same_device("a linear map", x, *bias);
    HS_CHECK(bias->dim() == 1 && bias->size(0) == weight.size(0) && bias->scalar_type() == x.scalar_type(),
             "the bias of this linear map must be ", x.scalar_type(), " [", weight.size(0), "], not ",
             bias->scalar_type(), " ", bias->sizes());
  }
  const Form form = form_of(gelu);
  if (!takes_linear(x, weight)) return plain_linear(x, weight, bias, form).contiguous();
  const Tensor added = bias ? bias->contiguous() : Tensor();
  return linear_forward(x.contiguous(), weight, added, {.form = form});
}

std::tuple<Tensor, Tensor, Tensor> linear_backward_op(const Tensor& gradient, const Tensor& x, const Tensor& weight,
                                                      std::optional<std::string> gelu, bool x_wanted,
                                                      bool weight_wanted, bool bias_wanted) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  check_linear(x, weight);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  HS_CHECK(gradient.sizes() == sizes, "the gradient of this linear map must be ", at::IntArrayRef(sizes), ", not ",
           gradient.sizes());
  const Form form = form_of(gelu);
  const LinearWants wants{.x = x_wanted, .weight = weight_wanted, .bias = bias_wanted};
  LinearGradients found;
  if (takes_linear(x, weight)) {
    found = linear_backward(x.contiguous(), weight, gradient, {.form = form}, wants);
  } else {
    const auto map = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      return {plain_linear(in[0], in[1], std::nullopt, form)};
    };
    const int64_t rows = c10::multiply_integers(x.sizes().begin(), x.sizes().end() - 1);
    const std::vector<Tensor> all = plain_gradients(map, {x, weight}, {gradient});
    if (x_wanted) found.x = all[0];
    if (weight_wanted) found.weight = all[1];
    if (bias_wanted) found.bias = gradient.reshape({rows, weight.size(0)}).sum(0);
  }
  const auto given = [&](const Tensor& y) { return y.defined() ? y.contiguous() : absent(x); };
  return {given(found.x), given(found.weight), given(found.bias)};
}

}  // namespace

static void add_products(torch::Library& m) {
  m.impl("linear", linear_op);
  m.impl("linear_backward", linear_backward_op);
}
HS_OPERATIONS(add_products);

}  // namespace headshare::torch_library
