// The loss of an output layer. Its gradients are found with it, a chunk of rows at a time.
#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/op_passes.h"
#include "headshare/torch_library/glue.h"

namespace headshare::torch_library {
namespace {

std::tuple<Tensor, Tensor, Tensor, Tensor> cross_entropy_op(const Tensor& hidden, const Tensor& embedding,
                                                            const Tensor& targets, const std::optional<Tensor>& bias,
                                                            int64_t ignored, std::optional<at::ScalarType> products,
                                                            bool hidden_wanted, bool embedding_wanted,
                                                            bool bias_wanted) {
  constexpr auto kWhat = "a cross-entropy";
  check_floating(kWhat, hidden);
  check_floating(kWhat, embedding);
  check_same_device(kWhat, hidden, embedding);
  check_same_device(kWhat, hidden, targets);
  if (bias) check_floating(kWhat, *bias);
  if (bias) check_same_device(kWhat, hidden, *bias);
  const LossWants wants{
      .hidden = hidden_wanted, .embedding = embedding_wanted, .bias = bias_wanted && bias.has_value()};
  const LossPass pass = cross_entropy_pass(hidden.contiguous(), embedding, targets, ignored, or_undefined(bias), wants,
                                           products.value_or(hidden.scalar_type()));
  return {pass.sum, or_absent(pass.hidden, hidden), or_absent(pass.embedding, hidden), or_absent(pass.bias, hidden)};
}

// Hidden states and weights are arguments so that autograd sees a gradient of a gradient asked for.
std::tuple<Tensor, Tensor, Tensor> cross_entropy_backward_op(const Tensor& gradient, const Tensor& /*hidden*/,
                                                             const Tensor& /*embedding*/,
                                                             const std::optional<Tensor>& /*bias*/,
                                                             const Tensor& hidden_gradient,
                                                             const Tensor& embedding_gradient,
                                                             const Tensor& bias_gradient) {
  HS_CHECK(gradient.numel() == 1, "the gradient of a loss is one number, not ", gradient.sizes());
  const auto scaled = [&](const Tensor& x) { return x * gradient.reshape({}).to(x.scalar_type()); };
  return {scaled(hidden_gradient), scaled(embedding_gradient), scaled(bias_gradient)};
}

}  // namespace

static void add_loss(torch::Library& m) {
  m.impl("cross_entropy_forward", cross_entropy_op);
  m.impl("cross_entropy_backward", cross_entropy_backward_op);
}
HS_OPERATIONS(add_loss);

}  // namespace headshare::torch_library
