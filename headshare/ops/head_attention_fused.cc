// Makes headshare/kernels/attention.h a backend for every problem.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "headshare/ops/head_attention_backends.h"
#include "headshare/ops/kernel_glue.h"

namespace headshare {
namespace kernel_glue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Returns the tensor that the fused kernel computes with.
Tensor computed(const Tensor& x, const Rule& rule) { return rule.narrow_products ? x : x.to(at::kFloat); }

class Fused : public torch::autograd::Function<Fused> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& kept_query, const Tensor& kept_key,
                        const Tensor& kept_value, const std::optional<Tensor>& bias,
                        c10::intrusive_ptr<RuleHolder> holder) {
    const Rule& rule = holder->rule;
    const Tensor key_bias = bias.value_or(Tensor());
    const Tensor query = computed(kept_query, rule), key = computed(kept_key, rule), value = computed(kept_value, rule);
    const kernels::AttentionSizes s = sizes_of(query, key, value, rule.heads);
    const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, query.options());
    const Tensor lse = at::empty({s.B, s.H, s.T}, query.options().dtype(at::kFloat));
    by_type(query, [&](auto type) {
      using T = decltype(type);
      kernels::attention_forward<T>(s, rule.with(key_bias), inputs<T>(query, key, value), view<T>(out),
                                    lse.data_ptr<float>(), machine());
    });
    const Tensor kept_out = out.to(kept_query.scalar_type());
    remember(context, {kept_query, kept_key, kept_value, key_bias, kept_out, lse}, holder);
    return kept_out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list saved = context->get_saved_variables();
    const Rule& rule = remembered_rule(context);
    const at::ScalarType type = saved[0].scalar_type();
    for (const size_t i : {0, 1, 2, 4}) saved[i] = computed(saved[i], rule);
    const Tensor query = saved[0], key = saved[1], value = saved[2], out = saved[4];
    const Tensor gradient = with_rows(computed(gradients[0], rule));
    const HeadGradients results(*context, saved);
    by_type(query, [&](auto type) {
      using T = decltype(type);
      kernels::attention_backward<T>(sizes_of(query, key, value, rule.heads), rule.with(saved[3]),
                                     inputs<T>(query, key, value), view<const T>(out), saved[5].const_data_ptr<float>(),
                                     view<const T>(gradient), results.views<T>(), machine());
    });
    variable_list list = results.list();
    for (const size_t i : {0, 1, 2}) list[i] = list[i].to(type);
    return list;
  }
};

std::vector<std::string> why_not_fused(const HeadProblem& p, const HeadMask&, const HeadDropout& dropout) {
  return why_not_blocks(p, dropout, multiplies_bf16(p));
}

Tensor run_fused(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  const at::ScalarType type = type_of(p);
  Rule rule = rule_of(p, mask, dropout);
  rule.narrow_products = multiplies_bf16(p);
  const auto holder = c10::make_intrusive<RuleHolder>(std::move(rule));
  return Fused::apply(with_rows(p.query.to(type)), with_rows(p.key.to(type)), with_rows(p.value.to(type)),
                      total_key_bias(p), holder);
}

}  // namespace
}  // namespace kernel_glue

const HeadBackend kFusedBackend = {.name = "fused",
                                   .summary = "headshare's kernel over blocks of queries and keys",
                                   .device = at::kCPU,
                                   .products = kernel_glue::block_products,
                                   .objections = kernel_glue::why_not_fused,
                                   .run = kernel_glue::run_fused};

}  // namespace headshare
