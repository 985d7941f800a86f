#include "headshare/ops/kernel_glue.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <utility>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/head_dropout.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/tensor_memory.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare::kernel_glue {

kernels::AttentionRule Rule::with(const KernelInputs& in) const {
  const auto floats = [](const Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
  return {static_cast<float>(scale),
          causal,
          visible_keys.defined() ? visible_keys.const_data_ptr<bool>() : nullptr,
          floats(in.bias),
          floats(alibi_slopes),
          floats(in.sinks),
          dropout};
}

Rule rule_of(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  Rule rule{.scale = p.scale,
            .causal = mask.causal,
            .dropout = dropout_mask_of(dropout),
            .heads = p.heads,
            .narrow_products = multiplies_bf16(p)};
  if (mask.visible_keys.defined()) rule.visible_keys = mask.visible_keys.contiguous();
  if (mask.alibi_slopes.defined()) rule.alibi_slopes = mask.alibi_slopes.to(at::kFloat).contiguous();
  return rule;
}

kernels::Machine machine() { return {&tile_gemm(), torch_threads(), working_memory}; }

kernels::AttentionSizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, int64_t heads) {
  return {query.size(0), heads,       query.size(1), key.size(1),  value.size(1),
          query.size(2), key.size(2), query.size(3), value.size(3)};
}

Tensor with_rows(const Tensor& x) {
  const bool fits = x.stride(3) == 1 && (x.size(2) == 1 || x.stride(2) >= x.size(3));
  return fits ? x : x.contiguous();
}

Tensor empty_heads(int64_t B, int64_t heads, int64_t rows, int64_t width, at::TensorOptions options) {
  return at::empty({B, rows, heads, width}, options).transpose(1, 2);
}

namespace {

Tensor empty_like_heads(const Tensor& x) {
  return empty_heads(x.size(0), x.size(1), x.size(2), x.size(3), x.options());
}

}  // namespace

HeadGradients::HeadGradients(const KernelInputs& in, bool with_bias)
    : query(empty_like_heads(in.query)), key(empty_like_heads(in.key)), value(empty_like_heads(in.value)) {
  if (in.bias.defined() && with_bias) bias = at::empty_like(in.bias);
}

at::ScalarType type_of(const HeadProblem& p) {
  const auto is_bf16 = [](const Tensor& x) { return x.scalar_type() == at::kBFloat16; };
  return is_bf16(p.query) || is_bf16(p.key) || is_bf16(p.value) ? at::kBFloat16 : p.query.scalar_type();
}

Tensor total_key_bias(const HeadProblem& p) {
  if (!p.query_shift.defined() && !p.key_bias.defined()) return {};
  Tensor bias;
  if (p.query_shift.defined()) {
    const c10::impl::ExcludeDispatchKeyGuard in_float(
        at::autocast::get_autocast_dispatch_key_from_device_type(p.key.device().type()));
    bias = p.query_shift.to(at::kFloat).matmul(p.key.squeeze(1).to(at::kFloat).transpose(1, 2));
  }
  if (p.key_bias.defined()) {
    const Tensor own = p.key_bias.to(at::kFloat);
    bias = bias.defined() ? bias + own : own;
  }
  return bias.contiguous();
}

Tensor float_sinks(const HeadProblem& p) { return p.sinks.defined() ? p.sinks.to(at::kFloat).contiguous() : Tensor(); }

KernelInputs inputs_as(const HeadProblem& p, at::ScalarType type) {
  return {with_rows(p.query.to(type)), with_rows(p.key.to(type)), with_rows(p.value.to(type)), total_key_bias(p),
          float_sinks(p)};
}

namespace {

bool odd_widths(const HeadProblem& p) { return p.query.size(3) % 2 != 0 || p.value.size(3) % 2 != 0; }

}  // namespace

bool multiplies_bf16(const HeadProblem& p) {
  return type_of(p) == at::kBFloat16 && !widens_products(p.query.device()) && tile_gemm().bf16 != nullptr &&
         !odd_widths(p);
}

Precision block_products(const HeadProblem& p) { return multiplies_bf16(p) ? Precision::kBf16 : Precision::kFp32; }

std::vector<std::string> why_not_kernels(const HeadProblem& p, const HeadDropout& dropout) {
  std::vector<std::string> reasons;
  const at::ScalarType type = type_of(p);
  if (type != at::kBFloat16 && type != at::kFloat) {
    reasons.push_back(join_text("its kernels compute in float32 and bfloat16, not ", c10::toString(type)));
  }
  if (dropout.active() && dropout.first_query != 0) {
    reasons.push_back(join_text("its dropout masks begin with query 0, not ", dropout.first_query));
  }
  return reasons;
}

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

}  // namespace headshare::kernel_glue
