// Our kernels for the CPU as backends: headshare/kernels/attention.h for every problem, factorised.h for
// problems whose heads differ by a bias only.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/kernels/factorised.h"
#include "headshare/ops/head_attention_backends.h"
#include "headshare/ops/head_dropout.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/tensor_memory.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace {

using kernels::Bf16;
using kernels::HeadsView;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the kernels read besides tensors that may need gradients.
struct Rule {
  double scale = 1;
  bool causal = false;
  Tensor visible_keys = {};  // bool [B, S] or undefined
  Tensor alibi_slopes = {};  // float [H] or undefined
  kernels::DropoutMask dropout;
  int64_t heads = 1;
  bool narrow_products = false;  // operands in bf16; else bf16 tensors are widened

  kernels::AttentionRule with(const Tensor& key_bias) const {
    return {static_cast<float>(scale),
            causal,
            visible_keys.defined() ? visible_keys.const_data_ptr<bool>() : nullptr,
            key_bias.defined() ? key_bias.const_data_ptr<float>() : nullptr,
            alibi_slopes.defined() ? alibi_slopes.const_data_ptr<float>() : nullptr,
            dropout};
  }
};

struct RuleHolder : torch::CustomClassHolder {
  explicit RuleHolder(Rule rule) : rule(std::move(rule)) {}
  Rule rule;
};

kernels::Machine machine() { return {&tile_gemm(), torch_threads(), working_memory}; }

template <typename T>
HeadsView<T> view(const Tensor& x) {
  using Element = std::remove_const_t<T>;
  return {static_cast<Element*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

// The kernels want rows that lie together and apart from each other.
Tensor with_rows(const Tensor& x) {
  const bool fits = x.stride(3) == 1 && (x.size(2) == 1 || x.stride(2) >= x.size(3));
  return fits ? x : x.contiguous();
}

// [B, heads, rows, width] that lies as [B, rows, heads, width]: what joining the heads needs.
Tensor empty_heads(int64_t B, int64_t heads, int64_t rows, int64_t width, at::TensorOptions options) {
  return at::empty({B, rows, heads, width}, options).transpose(1, 2);
}

Tensor empty_like_heads(const Tensor& x) {
  return empty_heads(x.size(0), x.size(1), x.size(2), x.size(3), x.options());
}

template <typename T>
kernels::AttentionInputs<T> inputs(const Tensor& query, const Tensor& key, const Tensor& value) {
  return {view<const T>(query), view<const T>(key), view<const T>(value)};
}

kernels::AttentionSizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, int64_t heads) {
  return {query.size(0), heads,       query.size(1), key.size(1),  value.size(1),
          query.size(2), key.size(2), query.size(3), value.size(3)};
}

// Calls body(float()) or body(Bf16()) by the tensor's type.
template <typename Body>
void by_type(const Tensor& x, const Body& body) {
  if (x.scalar_type() == at::kFloat) {
    body(float());
  } else {
    body(Bf16());
  }
}

// The gradients of query, key, value and, where it is wanted, of the bias: what a backward pass fills.
struct Gradients {
  Tensor query, key, value, bias;

  Gradients(const AutogradContext& context, const variable_list& inputs)
      : query(empty_like_heads(inputs[0])), key(empty_like_heads(inputs[1])), value(empty_like_heads(inputs[2])) {
    if (inputs[3].defined() && context.needs_input_grad(3)) bias = at::empty_like(inputs[3]);
  }

  template <typename T>
  kernels::AttentionGradients<T> views() const {
    return {view<T>(query), view<T>(key), view<T>(value), bias.defined() ? bias.data_ptr<float>() : nullptr};
  }
  // In the order of the arguments of forward().
  variable_list list() const { return {query, key, value, bias, Tensor()}; }
};

void remember(AutogradContext* context, variable_list tensors, const c10::intrusive_ptr<RuleHolder>& holder) {
  context->save_for_backward(std::move(tensors));
  context->saved_data["rule"] = c10::IValue::make_capsule(holder);
}

const Rule& remembered_rule(AutogradContext* context) {
  return static_cast<RuleHolder*>(context->saved_data["rule"].toCapsule().get())->rule;
}

// What the fused kernel computes with.
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
    const Gradients results(*context, saved);
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

// Calls body(float()) or body(Bf16()) by the products the rule asks for.
template <typename Body>
void by_product(const Rule& rule, const Body& body) {
  if (rule.narrow_products) {
    body(Bf16());
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
    const Gradients results(*context, saved);
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

// Under autocast projections are bf16, and what a scheme makes of them with its own parameters may be float
// again: bf16 it is then for all.
at::ScalarType type_of(const HeadProblem& p) {
  const auto is_bf16 = [](const Tensor& x) { return x.scalar_type() == at::kBFloat16; };
  return is_bf16(p.query) || is_bf16(p.key) || is_bf16(p.value) ? at::kBFloat16 : p.query.scalar_type();
}

std::vector<std::string> why_not_kernels(const HeadProblem& p, const HeadDropout& dropout) {
  std::vector<std::string> reasons;
  const Tensor& x = p.query;
  if (!x.device().is_cpu()) reasons.push_back(join_text("its kernels are for the CPU, not ", x.device().str()));
  const at::ScalarType type = type_of(p);
  if (type != at::kBFloat16 && type != at::kFloat) {
    reasons.push_back(join_text("its kernels compute in float32 and bfloat16, not ", c10::toString(type)));
  }
  if (dropout.active() && dropout.first_query != 0) {
    reasons.push_back(join_text("its dropout masks begin with query 0, not ", dropout.first_query));
  }
  return reasons;
}

bool odd_widths(const HeadProblem& p) { return p.query.size(3) % 2 != 0 || p.value.size(3) % 2 != 0; }

// `bf16`: what its products take.
std::vector<std::string> why_not_blocks(const HeadProblem& p, const HeadDropout& dropout, bool bf16) {
  std::vector<std::string> reasons = why_not_kernels(p, dropout);
  if (tile_gemm_name(bf16) == "none") {
    reasons.push_back(join_text("no fast product of small ", bf16 ? "bfloat16" : "float32", " matrices on this CPU"));
  }
  if (bf16 && odd_widths(p)) {
    reasons.push_back(join_text("in bfloat16 widths must be even, not ", p.query.size(3), " and ", p.value.size(3)));
  }
  return reasons;
}

std::vector<std::string> why_not_fused(const HeadProblem& p, const HeadMask&, const HeadDropout& dropout) {
  return why_not_blocks(p, dropout, multiplies_bf16(p));
}

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

bool needs_gradients(const HeadProblem& p) {
  if (!at::GradMode::is_enabled()) return false;
  const auto needs = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return needs(p.query) || needs(p.key) || needs(p.value) || needs(p.query_shift) || needs(p.key_bias);
}

// More queries fill the tiles of the general kernels; `headshare bench attention --queries 5 --masks full` times both
// sides of this bound.
int64_t most_new_queries(const HeadProblem& p) {
  const int64_t sharing = p.heads / p.key.size(1);
  return sharing == 1 ? 4 : std::clamp<int64_t>(48 / sharing, 4, 8);
}

std::vector<std::string> why_not_decode(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons = why_not_blocks(p, dropout, type_of(p) == at::kBFloat16);
  const int64_t queries = p.query.size(2);
  if (queries > most_new_queries(p)) {
    reasons.push_back(join_text("it takes up to ", most_new_queries(p), " new queries, not ", queries));
  }
  // So that a sequence that attends to itself gives the same bits with gradients and without.
  if (queries > 1 && queries >= p.key.size(2)) {
    reasons.push_back(join_text("several queries, ", queries, ", must be fewer than the ", p.key.size(2), " keys"));
  }
  if (queries > 1 && (mask.causal || mask.alibi_slopes.defined())) {
    reasons.push_back(join_text("of ", queries, " queries none may come before another (causal, ALiBi)"));
  }
  if (dropout.active()) reasons.emplace_back("it has no dropout");
  if (needs_gradients(p)) reasons.emplace_back("it has no gradients");
  return reasons;
}

Rule rule_of(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  Rule rule{.scale = p.scale, .causal = mask.causal, .dropout = dropout_mask_of(dropout), .heads = p.heads};
  if (mask.visible_keys.defined()) rule.visible_keys = mask.visible_keys.contiguous();
  if (mask.alibi_slopes.defined()) rule.alibi_slopes = mask.alibi_slopes.to(at::kFloat).contiguous();
  return rule;
}

// key_bias_h[j] + query_shift_h . k_j: float [B, H, S], nothing when neither is there. Autograd takes the
// gradient of the shift from here.
std::optional<Tensor> total_key_bias(const HeadProblem& p) {
  if (!p.query_shift.defined() && !p.key_bias.defined()) return std::nullopt;
  Tensor bias;
  if (p.query_shift.defined()) {
    const c10::impl::ExcludeDispatchKeyGuard in_float(c10::DispatchKey::AutocastCPU);
    bias = p.query_shift.to(at::kFloat).matmul(p.key.squeeze(1).to(at::kFloat).transpose(1, 2));
  }
  if (p.key_bias.defined()) {
    const Tensor own = p.key_bias.to(at::kFloat);
    bias = bias.defined() ? bias + own : own;
  }
  return bias.contiguous();
}

Tensor run_decode(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  // For few queries it is cheaper to shift them than to pass over the keys for a bias.
  HeadProblem shifted = p;
  shifted.query_shift = Tensor();
  if (p.query_shift.defined()) shifted.query = p.query + p.query_shift.unsqueeze(1);  // [B, H, T, Dk]
  const at::ScalarType type = type_of(p);
  const Tensor query = with_rows(shifted.query.to(type));
  const Tensor key = with_rows(p.key.to(type));
  const Tensor value = with_rows(p.value.to(type));
  const Tensor bias = total_key_bias(shifted).value_or(Tensor());
  const Rule rule = rule_of(p, mask, dropout);
  const kernels::AttentionSizes s = sizes_of(query, key, value, p.heads);
  const Tensor out = empty_heads(s.B, s.H, s.T, s.Dv, query.options());
  by_type(query, [&](auto element) {
    using T = decltype(element);
    kernels::attention_decode<T>(s, rule.with(bias), inputs<T>(query, key, value), view<T>(out), machine());
  });
  return out;
}

Tensor run_fused(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  const at::ScalarType type = type_of(p);
  Rule rule = rule_of(p, mask, dropout);
  rule.narrow_products = multiplies_bf16(p);
  const auto holder = c10::make_intrusive<RuleHolder>(std::move(rule));
  return Fused::apply(with_rows(p.query.to(type)), with_rows(p.key.to(type)), with_rows(p.value.to(type)),
                      total_key_bias(p), holder);
}

// Tensors in float32; in bf16 only the operands of the products over heads are.
Tensor run_factorised(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  Rule rule = rule_of(p, mask, dropout);
  rule.narrow_products = multiplies_bf16(p);
  const auto holder = c10::make_intrusive<RuleHolder>(std::move(rule));
  return Factorised::apply(with_rows(p.query.to(at::kFloat)), with_rows(p.key.to(at::kFloat)),
                           with_rows(p.value.to(at::kFloat)), total_key_bias(p), holder)
      .to(type_of(p));
}

}  // namespace

bool multiplies_bf16(const HeadProblem& p) {
  return type_of(p) == at::kBFloat16 && !widens_products(p.query.device()) && tile_gemm().bf16 != nullptr &&
         !odd_widths(p);
}

const HeadBackend kFusedBackend = {"fused", "headshare's kernel over blocks of queries and keys", why_not_fused,
                                   run_fused};

const HeadBackend kDecodeBackend = {"decode", "headshare's kernel for a few new queries against a cache",
                                    why_not_decode, run_decode};

const HeadBackend kFactorisedBackend = {"factorised", "headshare's kernel for heads that differ by a bias only",
                                        why_not_factorised, run_factorised};

}  // namespace headshare
