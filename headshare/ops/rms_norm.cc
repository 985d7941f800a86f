#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "headshare/kernels/passes.h"
#include "headshare/ops/norm.h"
#include "headshare/ops/parallel.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls body(first row, rows, item) for shares of the rows, one share a thread.
template <class Body>
void each_share(int64_t rows, int64_t shares, const Body& body) {
  torch_threads().run(shares, [&](int64_t item, int64_t) {
    const int64_t first = rows * item / shares;
    body(first, rows * (item + 1) / shares - first, item);
  });
}

int64_t shares_of(int64_t rows) { return std::clamp<int64_t>(rows / 16, 1, torch_threads().threads); }

// Computes in float32 on the CPU with two passes over a row. libtorch's single operations make four, with a tensor
// each.
class CpuRmsNorm : public torch::autograd::Function<CpuRmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight, double eps) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
    const Tensor x = given.contiguous();
    const int64_t width = weight.size(0);
    const int64_t rows = width == 0 ? 0 : x.numel() / width;
    Tensor y = at::empty_like(x);
    Tensor inverse = at::empty({rows}, x.options());
    const float* from = x.const_data_ptr<float>();
    const float* factors = weight.const_data_ptr<float>();
    float* to = y.mutable_data_ptr<float>();
    float* kept = inverse.mutable_data_ptr<float>();
    each_share(rows, shares_of(rows), [&](int64_t first, int64_t count, int64_t) {
      for (int64_t r = first; r < first + count; ++r) {
        kept[r] = kernels::passes().rms_norm(from + r * width, factors, width, static_cast<float>(eps), to + r * width);
      }
    });
    context->save_for_backward({x, weight, inverse});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
    const variable_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor dy = gradients[0].to(at::kFloat).contiguous();
    const int64_t width = saved[1].size(0);
    const int64_t rows = saved[2].size(0);
    const int64_t shares = shares_of(rows);
    Tensor dx = at::empty_like(x);
    Tensor parts = at::zeros({shares, width}, x.options());  // of the weight's gradient, one a thread
    const float* values = x.const_data_ptr<float>();
    const float* factors = saved[1].const_data_ptr<float>();
    const float* inverse = saved[2].const_data_ptr<float>();
    const float* slopes = dy.const_data_ptr<float>();
    float* to = dx.mutable_data_ptr<float>();
    float* sums = parts.mutable_data_ptr<float>();
    each_share(rows, shares, [&](int64_t first, int64_t count, int64_t item) {
      for (int64_t r = first; r < first + count; ++r) {
        const int64_t at = r * width;
        kernels::passes().rms_norm_gradient(values + at, factors, slopes + at, width, inverse[r], to + at,
                                            sums + item * width);
      }
    });
    return {dx, parts.sum(0), Tensor()};
  }
};

}  // namespace

RmsNorm::RmsNorm(int64_t width, double eps) : eps_(eps) {
  weight = declare("weight", {width}, Init::constant(1), Decay::kNo);
}

Tensor RmsNorm::forward(const Tensor& x) const {
  if (x.device().is_cpu() && x.scalar_type() == at::kFloat) return CpuRmsNorm::apply(x, weight, eps_);
  const Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  return (wide * (wide.square().mean(-1, /*keepdim=*/true) + eps_).rsqrt() * weight).to(x.scalar_type());
}

}  // namespace headshare
