#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/element_dropout.h"
#include "headshare/ops/drawn_mask.h"
#include "headshare/ops/layer.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/second_derivative.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor dropped(const Tensor& x, const kernels::DropoutMask& mask) {
  const Tensor input = x.contiguous();
  const Tensor out = at::empty_like(input);
  const kernels::Parallel threads = torch_threads();
  if (x.scalar_type() == at::kFloat) {
    kernels::element_dropout(input.const_data_ptr<float>(), x.numel(), mask, out.data_ptr<float>(), threads);
  } else {
    kernels::element_dropout(static_cast<const kernels::Bf16*>(input.const_data_ptr()), x.numel(), mask,
                             static_cast<kernels::Bf16*>(out.data_ptr()), threads);
  }
  return out;
}

bool has_dropout(const Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

// Returns the same factors of x's elements on devices and of types that headshare has no pass for.
Tensor kept_factors(const Tensor& x, double p, uint64_t key) {
  return drawn_element_factors(kernels::dropout_mask(p, key, /*shared=*/false), x.numel(), x.options()).view_as(x);
}

}  // namespace

Tensor dropout_pass(const Tensor& x, double p, uint64_t key) {
  if (!has_dropout(x)) return x * kept_factors(x, p, key);
  return dropped(x, kernels::dropout_mask(p, key, /*shared=*/false));
}

namespace {

// This function keeps no mask: the backward pass draws it again.
class CpuDropout : public torch::autograd::Function<CpuDropout> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, double p, int64_t key) {
    context->saved_data["p"] = p;
    context->saved_data["key"] = key;
    return dropout_pass(x, p, static_cast<uint64_t>(key));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("dropout");
    const auto key = static_cast<uint64_t>(context->saved_data["key"].toInt());
    return {dropout_pass(gradients[0], context->saved_data["p"].toDouble(), key), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, const Layer& site, uint64_t part) {
  if (p == 0 || !site.is_training()) return x;
  const uint64_t key = site.dropout_key(part);
  return has_dropout(x) ? CpuDropout::apply(x, p, static_cast<int64_t>(key)) : x * kept_factors(x, p, key);
}

}  // namespace headshare
