#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "headshare/kernels/passes.h"
#include "headshare/ops/norm.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/plain_gradients.h"
#include "headshare/ops/second_derivative.h"

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

bool has_rms_norm(const Tensor& x) { return x.device().is_cpu() && x.scalar_type() == at::kFloat; }

RmsNormPass rms_norm_floats(const Tensor& x, const Tensor& weight, double eps) {
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
  return {y, inverse};
}

RmsNormGradients rms_norm_floats_back(const Tensor& x, const Tensor& weight, const Tensor& inverse, const Tensor& dy) {
  const int64_t width = weight.size(0);
  const int64_t rows = inverse.size(0);
  const int64_t shares = shares_of(rows);
  Tensor dx = at::empty_like(x);
  Tensor parts = at::zeros({shares, width}, x.options());  // of the weight's gradient, one a thread
  const float* values = x.const_data_ptr<float>();
  const float* factors = weight.const_data_ptr<float>();
  const float* kept = inverse.const_data_ptr<float>();
  const float* slopes = dy.const_data_ptr<float>();
  float* to = dx.mutable_data_ptr<float>();
  float* sums = parts.mutable_data_ptr<float>();
  each_share(rows, shares, [&](int64_t first, int64_t count, int64_t item) {
    for (int64_t r = first; r < first + count; ++r) {
      const int64_t at = r * width;
      kernels::passes().rms_norm_gradient(values + at, factors, slopes + at, width, kept[r], to + at,
                                          sums + item * width);
    }
  });
  return {dx, parts.sum(0)};
}

Tensor in_float_or_double(const Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

// Returns 1 / sqrt(mean(x^2) + eps) of x [.., width] -> [.., 1].
Tensor inverse_root(const Tensor& x, double eps) { return (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt(); }

Tensor plain_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor wide = in_float_or_double(x);
  return (wide * inverse_root(wide, eps) * weight).to(x.scalar_type());
}

}  // namespace

RmsNormPass rms_norm_forward(const Tensor& x, const Tensor& weight, double eps) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  if (has_rms_norm(x)) return rms_norm_floats(x.contiguous(), weight, eps);
  return {plain_rms_norm(x, weight, eps), inverse_root(in_float_or_double(x), eps).reshape(-1)};
}

RmsNormGradients rms_norm_backward(const Tensor& x, const Tensor& weight, const RmsNormPass& pass, const Tensor& dy,
                                   double eps) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  if (has_rms_norm(x))
    return rms_norm_floats_back(x.contiguous(), weight, pass.inverse, dy.to(at::kFloat).contiguous());
  const auto norm = [eps](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {plain_rms_norm(in[0], in[1], eps)};
  };
  const std::vector<Tensor> found = plain_gradients(norm, {x, weight}, {dy});
  return {found[0], found[1]};
}

namespace {

// Computes in float32 on the CPU with two passes over a row. libtorch's single operations make four, with a tensor
// each.
class CpuRmsNorm : public torch::autograd::Function<CpuRmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight, double eps) {
    const Tensor x = given.contiguous();
    const RmsNormPass pass = rms_norm_forward(x, weight, eps);
    context->save_for_backward({x, weight, pass.inverse});
    context->saved_data["eps"] = eps;
    return pass.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("the RMS norm");
    const variable_list saved = context->get_saved_variables();
    const RmsNormGradients found = rms_norm_backward(saved[0], saved[1], {.y = {}, .inverse = saved[2]}, gradients[0],
                                                     context->saved_data["eps"].toDouble());
    return {found.x, found.weight, Tensor()};
  }
};

}  // namespace

RmsNorm::RmsNorm(int64_t width, double eps) : eps_(eps) {
  weight = declare("weight", {width}, Init::constant(1), Decay::kNo);
}

Tensor RmsNorm::forward(const Tensor& x) const {
  return has_rms_norm(x) ? CpuRmsNorm::apply(x, weight, eps_) : plain_rms_norm(x, weight, eps_);
}

}  // namespace headshare
