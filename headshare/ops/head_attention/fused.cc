// Makes headshare/kernels/attention.h a backend for every problem.
#include <ATen/ATen.h>

#include <numbers>

#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/kernel_glue.h"

namespace headshare {
namespace kernel_glue {
namespace {

// Returns the tensor that the fused kernel computes with.
Tensor computed(const Tensor& x, const Rule& rule) { return rule.narrow_products ? x : x.to(at::kFloat); }

KernelInputs computed(const KernelInputs& kept, const Rule& rule) {
  return {computed(kept.query, rule), computed(kept.key, rule), computed(kept.value, rule), kept.bias, kept.sinks};
}

KernelInputs fused_inputs(const HeadProblem& p) { return inputs_as(p, type_of(p)); }

KernelOutput fused_forward(const KernelInputs& kept, const Rule& rule) {
  const KernelInputs in = computed(kept, rule);
  const kernels::AttentionSizes s = sizes_of(in.query, in.key, in.value, rule.heads);
  const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, in.query.options());
  const Tensor lse = at::empty({s.B, s.H, s.T}, in.query.options().dtype(at::kFloat));
  by_type(in.query, [&](auto type) {
    using T = decltype(type);
    kernels::attention_forward<T>(s, rule.with(in), inputs<T>(in.query, in.key, in.value), view<T>(out),
                                  lse.data_ptr<float>(), machine());
  });
  return {out.to(kept.query.scalar_type()), {lse}};
}

// A sink is a key of value 0, so the gradient of its score in a row is -weight * (dO . O).
Tensor sink_gradients(const Tensor& sinks, const Tensor& lse, const Tensor& out, const Tensor& gradient) {
  const Tensor weights = at::exp2(sinks.view({1, -1, 1}) * std::numbers::log2e - lse);  // [B, H, T]
  const Tensor delta = (out.to(at::kFloat) * gradient.to(at::kFloat)).sum(3);
  return -(weights * delta).sum(at::IntArrayRef({0, 2}));
}

HeadGradients fused_backward(const KernelInputs& kept, const KernelOutput& made, const Tensor& kept_gradient,
                             bool with_bias, const Rule& rule) {
  const KernelInputs in = computed(kept, rule);
  const Tensor out = computed(made.out, rule);
  const Tensor gradient = with_rows(computed(kept_gradient, rule));
  HeadGradients found(in, with_bias);
  by_type(in.query, [&](auto type) {
    using T = decltype(type);
    kernels::attention_backward<T>(sizes_of(in.query, in.key, in.value, rule.heads), rule.with(in),
                                   inputs<T>(in.query, in.key, in.value), view<const T>(out),
                                   made.state.lse.const_data_ptr<float>(), view<const T>(gradient), found.views<T>(),
                                   machine());
  });
  if (in.sinks.defined()) found.sinks = sink_gradients(in.sinks, made.state.lse, out, gradient);
  for (Tensor* x : {&found.query, &found.key, &found.value}) *x = x->to(kept.query.scalar_type());
  return found;
}

constexpr KernelPasses kFusedPasses = {.inputs = fused_inputs, .forward = fused_forward, .backward = fused_backward};

std::vector<std::string> why_not_fused(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons = why_not_blocks(p, dropout, multiplies_bf16(p));
  if (has_window(p, mask)) reasons.emplace_back(kNoWindows);
  return reasons;
}

Tensor run_fused(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  return run_passes(kFusedPasses, p, mask, dropout);
}

}  // namespace
}  // namespace kernel_glue

const HeadBackend kFusedBackend = {.name = "fused",
                                   .summary = "headshare's kernel over blocks of queries and keys",
                                   .device = at::kCPU,
                                   .products = kernel_glue::block_products,
                                   .objections = kernel_glue::why_not_fused,
                                   .run = kernel_glue::run_fused,
                                   .passes = &kernel_glue::kFusedPasses};

}  // namespace headshare
