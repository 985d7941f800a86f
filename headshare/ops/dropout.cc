#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/element_dropout.h"
#include "headshare/ops/layer.h"
#include "headshare/ops/parallel.h"

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

// This function keeps no mask: the backward pass draws it again.
class CpuDropout : public torch::autograd::Function<CpuDropout> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, double p, int64_t key) {
    context->saved_data["p"] = p;
    context->saved_data["key"] = key;
    return dropped(x, mask(p, key));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto drawn = mask(context->saved_data["p"].toDouble(), context->saved_data["key"].toInt());
    return {dropped(gradients[0], drawn), Tensor(), Tensor()};
  }

 private:
  static kernels::DropoutMask mask(double p, int64_t key) {
    return kernels::dropout_mask(p, static_cast<uint64_t>(key), /*shared=*/false);
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, const Layer& site, uint64_t part) {
  if (p == 0 || !site.is_training()) return x;
  if (x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16)) {
    return CpuDropout::apply(x, p, static_cast<int64_t>(site.dropout_key(part)));
  }
  const Tensor keep = at::empty_like(x).bernoulli_(1 - p, site.dropout_generator(x, part)).div_(1 - p);
  return x * keep;
}

}  // namespace headshare
