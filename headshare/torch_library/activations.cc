// Operations on single values and rows: gelu, dropout, RMS norm.
#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/op_passes.h"
#include "headshare/torch_library/glue.h"

namespace headshare::torch_library {
namespace {

Tensor gelu_op(const Tensor& x, std::string approximate) {
  check_floating("gelu", x);
  return gelu_forward(x, gelu_form(approximate)).contiguous();
}

Tensor gelu_backward_op(const Tensor& gradient, const Tensor& x, std::string approximate) {
  check_floating("gelu", x);
  HS_CHECK(gradient.sizes() == x.sizes(), "the gradient of gelu must be ", x.sizes(), ", not ", gradient.sizes());
  return gelu_backward(x, gradient, gelu_form(approximate)).contiguous();
}

Tensor dropout_op(const Tensor& x, double p, const Tensor& key) {
  check_floating("dropout", x);
  check_probability(p);
  const uint64_t stream = stream_of(key);
  return p == 0 ? x.clone(at::MemoryFormat::Contiguous) : dropout_pass(x.contiguous(), p, stream);
}

void check_norm(const Tensor& x, const Tensor& weight) {
  check_floating("an RMS norm", x);
  check_floating("an RMS norm", weight);
  check_same_device("an RMS norm", x, weight);
  HS_CHECK(x.dim() > 0 && weight.dim() == 1 && x.size(-1) == weight.size(0),
           "an RMS norm takes rows as wide as its weight, not ", x.sizes(), " and ", weight.sizes());
  HS_CHECK(x.scalar_type() != at::kFloat || weight.scalar_type() == at::kFloat,
           "the weight of an RMS norm of float32 rows must be float32, not ", weight.scalar_type());
}

std::tuple<Tensor, Tensor> rms_norm_op(const Tensor& x, const Tensor& weight, double eps) {
  check_norm(x, weight);
  const RmsNormPass pass = rms_norm_forward(x, weight.contiguous(), eps);
  return {pass.y.contiguous(), pass.inverse};
}

std::tuple<Tensor, Tensor> rms_norm_backward_op(const Tensor& gradient, const Tensor& x, const Tensor& weight,
                                                const Tensor& inverse, double eps) {
  check_norm(x, weight);
  HS_CHECK(gradient.sizes() == x.sizes(), "the gradient of an RMS norm must be ", x.sizes(), ", not ",
           gradient.sizes());
  const int64_t rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
  HS_CHECK(inverse.dim() == 1 && inverse.size(0) == rows, "an RMS norm of ", rows, " rows left ", rows,
           " factors, not ", inverse.sizes());
  const RmsNormGradients found =
      rms_norm_backward(x, weight.contiguous(), {.y = {}, .inverse = inverse.contiguous()}, gradient, eps);
  return {found.x.contiguous(), found.weight.contiguous()};
}

}  // namespace

static void add_activations(torch::Library& m) {
  m.impl("gelu", gelu_op);
  m.impl("gelu_backward", gelu_backward_op);
  m.impl("dropout", dropout_op);
  m.impl("rms_norm_forward", rms_norm_op);
  m.impl("rms_norm_backward", rms_norm_backward_op);
}
HS_OPERATIONS(add_activations);

}  // namespace headshare::torch_library
