// Makes headshare/kernels/factorised.h a backend for problems whose heads differ by a bias only.
#include "headshare/kernels/factorised.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/kernel_glue.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace kernel_glue {
namespace {

// Calls body(float()) or body(Bf16()) by the products the rule asks for.
template <typename Body>
void by_product(const Rule& rule, const Body& body) {
  if (rule.narrow_products) {
    body(kernels::Bf16());
  } else {
    body(float());
  }
}

kernels::FactorisedSizes factorised_sizes(const KernelInputs& in, const Rule& rule) {
  return {in.query.size(0), rule.heads, in.query.size(2), in.key.size(2), in.query.size(3), in.value.size(3)};
}

kernels::FactorisedState factorised_state(const KernelState& state) {
  return {state.lse.data_ptr<float>(), state.m.data_ptr<float>(), state.by_head.data_ptr<bool>()};
}

// Tensors are in float32; only the operands of the products over heads may be in bf16.
KernelInputs factorised_inputs(const HeadProblem& p) { return inputs_as(p, at::kFloat); }

KernelOutput factorised_forward(const KernelInputs& in, const Rule& rule) {
  const kernels::FactorisedSizes s = factorised_sizes(in, rule);
  const at::TensorOptions options = in.query.options();
  const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, options);
  const KernelState state{.lse = at::empty({s.B, s.H, s.T}, options),
                          .m = at::empty({s.B, s.T}, options),
                          .by_head = at::empty({s.B, s.H, s.blocks()}, options.dtype(at::kBool))};
  by_product(rule, [&](auto product) {
    kernels::factorised_forward<decltype(product)>(s, rule.with(in), inputs<float>(in.query, in.key, in.value),
                                                   view<float>(out), factorised_state(state), machine());
  });
  return {out, state};
}

HeadGradients factorised_backward(const KernelInputs& in, const KernelOutput& made, const Tensor& given, bool with_bias,
                                  const Rule& rule) {
  const Tensor gradient = with_rows(given);
  HeadGradients found(in, with_bias);
  by_product(rule, [&](auto product) {
    kernels::factorised_backward<decltype(product)>(factorised_sizes(in, rule), rule.with(in),
                                                    inputs<float>(in.query, in.key, in.value),
                                                    view<const float>(made.out), factorised_state(made.state),
                                                    view<const float>(gradient), found.views<float>(), machine());
  });
  return found;
}

constexpr KernelPasses kFactorisedPasses = {
    .inputs = factorised_inputs, .forward = factorised_forward, .backward = factorised_backward};

std::vector<std::string> why_not_factorised(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons = why_not_kernels(p, dropout);
  if (tile_gemm_name(/*bf16=*/false) == "none") {
    reasons.emplace_back("no fast product of small float32 matrices on this CPU");
  }
  if (p.query.size(1) != 1 || p.key.size(1) != 1 || p.value.size(1) != 1) {
    reasons.push_back(join_text("it needs one head of queries, keys and values, not ", p.query.size(1), ", ",
                                p.key.size(1), " and ", p.value.size(1)));
  }
  if (p.heads == 1) reasons.emplace_back("one head has nothing to factor out");
  if (p.sinks.defined()) reasons.emplace_back("it has no sinks");
  if (has_window(p, mask)) reasons.emplace_back(kNoWindows);
  if (mask.alibi_slopes.defined() && !mask.causal) {
    reasons.emplace_back("distances to both sides do not separate into a term for each key (ALiBi, not causal)");
  }
  if (dropout.active() && !dropout.shared) {
    reasons.emplace_back("a dropout mask for each head does not factorise; a shared one does");
  }
  return reasons;
}

Tensor run_factorised(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  return run_passes(kFactorisedPasses, p, mask, dropout);
}

}  // namespace
}  // namespace kernel_glue

const HeadBackend kFactorisedBackend = {.name = "factorised",
                                        .summary = "headshare's kernel for heads that differ by a bias only",
                                        .device = at::kCPU,
                                        .products = kernel_glue::block_products,
                                        .objections = kernel_glue::why_not_factorised,
                                        .run = kernel_glue::run_factorised,
                                        .passes = &kernel_glue::kFactorisedPasses};

}  // namespace headshare
