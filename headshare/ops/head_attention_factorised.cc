// Makes headshare/kernels/factorised.h a backend for problems whose heads differ by a bias only.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "headshare/base/error.h"
#include "headshare/kernels/factorised.h"
#include "headshare/ops/head_attention_backends.h"
#include "headshare/ops/kernel_glue.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace kernel_glue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls body(float()) or body(Bf16()) by the products the rule asks for.
template <typename Body>
void by_product(const Rule& rule, const Body& body) {
  if (rule.narrow_products) {
    body(kernels::Bf16());
  } else {
    body(float());
  }
}

class Factorised : public torch::autograd::Function<Factorised> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& bias, c10::intrusive_ptr<RuleHolder> holder) {
    const Rule& rule = holder->rule;
    const Tensor key_bias = bias.value_or(Tensor());
    const kernels::FactorisedSizes s = sizes(query, key, value, rule);
    const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, query.options());
    const Tensor lse = at::empty({s.B, s.H, s.T}, query.options());
    const Tensor m = at::empty({s.B, s.T}, query.options());
    const Tensor by_head = at::empty({s.B, s.H, s.blocks()}, query.options().dtype(at::kBool));
    by_product(rule, [&](auto product) {
      kernels::factorised_forward<decltype(product)>(s, rule.with(key_bias), inputs<float>(query, key, value),
                                                     view<float>(out), state(lse, m, by_head), machine());
    });
    remember(context, {query, key, value, key_bias, out, lse, m, by_head}, holder);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Rule& rule = remembered_rule(context);
    const Tensor query = saved[0], key = saved[1], value = saved[2];
    const Tensor gradient = with_rows(gradients[0]);
    const HeadGradients results(*context, saved);
    by_product(rule, [&](auto product) {
      kernels::factorised_backward<decltype(product)>(sizes(query, key, value, rule), rule.with(saved[3]),
                                                      inputs<float>(query, key, value), view<const float>(saved[4]),
                                                      state(saved[5], saved[6], saved[7]), view<const float>(gradient),
                                                      results.views<float>(), machine());
    });
    return results.list();
  }

 private:
  static kernels::FactorisedSizes sizes(const Tensor& query, const Tensor& key, const Tensor& value, const Rule& rule) {
    return {query.size(0), rule.heads, query.size(2), key.size(2), query.size(3), value.size(3)};
  }
  static kernels::FactorisedState state(const Tensor& lse, const Tensor& m, const Tensor& by_head) {
    return {lse.data_ptr<float>(), m.data_ptr<float>(), by_head.data_ptr<bool>()};
  }
};

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
  if (mask.alibi_slopes.defined() && !mask.causal) {
    reasons.emplace_back("distances to both sides do not separate into a term for each key (ALiBi, not causal)");
  }
  if (dropout.active() && !dropout.shared) {
    reasons.emplace_back("a dropout mask for each head does not factorise; a shared one does");
  }
  return reasons;
}

// Tensors are in float32; only the operands of the products over heads may be in bf16.
Tensor run_factorised(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  Rule rule = rule_of(p, mask, dropout);
  rule.narrow_products = multiplies_bf16(p);
  const auto holder = c10::make_intrusive<RuleHolder>(std::move(rule));
  return Factorised::apply(with_rows(p.query.to(at::kFloat)), with_rows(p.key.to(at::kFloat)),
                           with_rows(p.value.to(at::kFloat)), total_key_bias(p), holder)
      .to(type_of(p));
}

}  // namespace
}  // namespace kernel_glue

const HeadBackend kFactorisedBackend = {.name = "factorised",
                                        .summary = "headshare's kernel for heads that differ by a bias only",
                                        .device = at::kCPU,
                                        .products = kernel_glue::block_products,
                                        .objections = kernel_glue::why_not_factorised,
                                        .run = kernel_glue::run_factorised};

}  // namespace headshare
