#include "headshare/ops/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/second_derivative.h"

namespace headshare {
namespace {

using kernels::Bf16;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One call of a pass takes so many values: they stay in the first cache on their way through float.
constexpr int64_t kBlock = 2048;

// Calls body(first, count) for blocks of n values, divided among threads.
template <class Body>
void each_block(int64_t n, const Body& body) {
  const kernels::Parallel threads = torch_threads();
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  const int64_t items = std::min(blocks, 4 * threads.threads);
  threads.run(items, [&](int64_t item, int64_t) {
    const int64_t end = std::min(n, blocks * (item + 1) / items * kBlock);
    for (int64_t first = blocks * item / items * kBlock; first < end; first += kBlock) {
      body(first, std::min(kBlock, end - first));
    }
  });
}

const float* widened(const Bf16* x, int64_t n, float* room) {
  for (int64_t i = 0; i < n; ++i) room[i] = kernels::to_float(x[i]);
  return room;
}

void narrowed(const float* x, int64_t n, Bf16* out) { kernels::tiles().narrow(x, n, /*rows=*/1, n, out, n); }

}  // namespace

Tensor gelu_values(const Tensor& x, GeluForm form) {
  Tensor y = at::empty_like(x);
  const kernels::Passes& passes = kernels::passes();
  if (x.scalar_type() == at::kFloat) {
    const float* from = x.const_data_ptr<float>();
    float* to = y.mutable_data_ptr<float>();
    each_block(x.numel(), [&](int64_t i, int64_t n) { passes.gelu(from + i, n, form, to + i); });
  } else {
    const auto* from = static_cast<const Bf16*>(x.const_data_ptr());
    auto* to = static_cast<Bf16*>(y.mutable_data_ptr());
    each_block(x.numel(), [&](int64_t i, int64_t n) {
      float room[kBlock] = {};
      passes.gelu(widened(from + i, n, room), n, form, room);
      narrowed(room, n, to + i);
    });
  }
  return y;
}

void gelu_gradient(const Tensor& x, const Tensor& dy, GeluForm form, const Tensor& dx) {
  const kernels::Passes& passes = kernels::passes();
  if (x.scalar_type() == at::kFloat) {
    const float* at_x = x.const_data_ptr<float>();
    const float* from = dy.const_data_ptr<float>();
    float* to = dx.mutable_data_ptr<float>();
    each_block(x.numel(), [&](int64_t i, int64_t n) { passes.gelu_gradient(at_x + i, from + i, n, form, to + i); });
  } else {
    const auto* at_x = static_cast<const Bf16*>(x.const_data_ptr());
    const auto* from = static_cast<const Bf16*>(dy.const_data_ptr());
    auto* to = static_cast<Bf16*>(dx.mutable_data_ptr());
    each_block(x.numel(), [&](int64_t i, int64_t n) {
      float room[kBlock] = {}, slopes[kBlock] = {};
      passes.gelu_gradient(widened(at_x + i, n, room), widened(from + i, n, slopes), n, form, room);
      narrowed(room, n, to + i);
    });
  }
}

namespace {

bool has_gelu(const Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

const char* libtorch_name(GeluForm form) { return form == GeluForm::kTanh ? "tanh" : "none"; }

}  // namespace

Tensor gelu_forward(const Tensor& x, GeluForm form) {
  return has_gelu(x) ? gelu_values(x.contiguous(), form) : at::gelu(x, libtorch_name(form));
}

Tensor gelu_backward(const Tensor& given, const Tensor& dy, GeluForm form) {
  const Tensor slopes = dy.to(given.scalar_type());
  if (!has_gelu(given)) return at::gelu_backward(slopes, given, libtorch_name(form));
  const Tensor x = given.contiguous();
  Tensor dx = at::empty_like(x);
  gelu_gradient(x, slopes.contiguous(), form, dx);
  return dx;
}

namespace {

class CpuGelu : public torch::autograd::Function<CpuGelu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, bool tanh) {
    const Tensor input = x.contiguous();
    context->save_for_backward({input});
    context->saved_data["tanh"] = tanh;
    return gelu_forward(input, form_of(tanh));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("GELU");
    const GeluForm form = form_of(context->saved_data["tanh"].toBool());
    return {gelu_backward(context->get_saved_variables()[0], gradients[0], form), Tensor()};
  }

 private:
  static GeluForm form_of(bool tanh) { return tanh ? GeluForm::kTanh : GeluForm::kErf; }
};

}  // namespace

Tensor gelu(const Tensor& x, GeluForm form) {
  return has_gelu(x) ? CpuGelu::apply(x, form == GeluForm::kTanh) : at::gelu(x, libtorch_name(form));
}

}  // namespace headshare
