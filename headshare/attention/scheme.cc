#include "headshare/attention/scheme.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/qk_norm.h"
#include "headshare/attention/rotary.h"
#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/ops/made_again.h"

namespace headshare {

Scheme::Scheme(AttentionOptions resolved, KeysNormed keys)
    : options_(std::move(resolved)), turned_width_(options_.rotary ? rotated_width(options_) : 0) {
  const auto norm = [&](const char* name) {
    return register_module(name, make_norm(NormKind::kRms, compared_width(options_), kQkNormEpsilon));
  };
  if (options_.qk_norm) query_norm_ = norm("query_norm");
  if (options_.qk_norm && (remembers(options_) || keys == KeysNormed::kWhenRead)) key_norm_ = norm("key_norm");
  if (is_gated()) gate_ = projection("gate", options_.gate == OutputGate::kHead ? H() : H() * D());
  if (options_.sinks) sinks_ = declare("sinks", {H()}, Init::constant(0), Decay::kNo);
  if (options_.content_bias && remembers(options_)) {
    content_bias_ = declare("content_bias", {H(), E()}, Init::constant(0), Decay::kNo);
  }
}

Memory Scheme::remember(const Tensor& y, int64_t first) const {
  HS_CHECK(remembers(options_), "this layer reads what a layer below it remembers and makes no keys and values itself");
  Memory memory = project_memory(y, first);
  // The content bias is c_h[j] = y_j . u_h: H values per token, kept as one more part [B, H, S, 1].
  if (has_content_bias()) memory.push_back(y.matmul(content_bias_.t()).transpose(1, 2).unsqueeze(3));
  return memory;
}

Form Scheme::form_for(int64_t, int64_t) const { return Form::kManyQueries; }

Posed Scheme::posed(const Tensor& queries, Memory memory, const Tensor& visible_keys) const {
  const Form form = form_for(queries.size(2), memory.front().size(2));
  return posed(queries, std::move(memory), form, visible_keys);
}

Posed Scheme::posed(const Tensor& queries, Memory memory, Form form, const Tensor& visible_keys) const {
  Tensor bias;
  if (options_.content_bias) {
    bias = memory.back().squeeze(3);  // [B, H, S]
    memory.pop_back();
  }
  if (meets_token_before()) memory = with_token_before(memory, visible_keys);
  Posed posed{.problem = pose(queries, memory, form), .form = form};
  posed.problem.key_bias = bias;
  posed.problem.scale = scale();
  posed.problem.sinks = sinks_;
  if (heads_differ()) posed.problem.heads = H();
  return posed;
}

Memory Scheme::kept(const Tensor& key, const Tensor& value, int64_t first) const {
  return {meets_token_before() ? key : rotated(key, first), value};
}

// A key turns after its shift, and what is offset does not turn.
Memory Scheme::with_token_before(const Memory& memory, const Tensor& visible_keys) const {
  Tensor key = memory[0], value = memory[1];
  if (shift_ != nullptr) {
    key = shift_->keys(key, visible_keys);
    value = shift_->values(value, visible_keys);
  }
  key = rotated(key, /*first=*/0);
  if (options_.key_offset) key = offset_keys(key, key.size(3) - turned_width_, visible_keys);
  return {key, value};
}

void Scheme::declare_shift(int64_t key_heads, int64_t value_heads) {
  if (options_.kv_shift) shift_ = register_module("shift", std::make_shared<KvShiftImpl>(key_heads, value_heads));
}

Tensor Scheme::gate(const Tensor& x) const { return is_gated() ? gate_->forward(x).sigmoid() : Tensor(); }

AttentionCost Scheme::cost() const {
  AttentionCost total = own_cost();
  if (has_content_bias()) {
    total.parameters += H() * E();
    total.effective += H() * E();
    total.cache_elements += H();
  }
  const int64_t own = (is_gated() ? gate_->weight.numel() : 0) + (options_.sinks ? H() : 0);
  total.parameters += own;
  total.effective += own;
  if (shift_ != nullptr) {
    const int64_t keys = shift_->key_heads(), values = shift_->value_heads();
    total.parameters += 2 * (keys + values);
    // A factor of a head is a part of its maps, unless a norm stands between that all heads share.
    total.effective += keys + values + (options_.qk_norm && keys > 1 ? keys : 0);
  }
  if (options_.qk_norm) {
    const int64_t width = compared_width(options_);
    const int64_t effective = effective_norm_weights(width);
    const bool both = key_norm_ != nullptr;
    total.parameters += both ? 2 * width : width;
    total.effective += both ? effective : effective - std::min(turned_width_, effective);
  }
  if (!remembers(options_)) total.cache_elements = 0;
  for (const Declared& one : declared_parameters(*this)) {
    if (one.name.ends_with(".bias")) total.biases += one.tensor.numel();
  }
  return total;
}

Linear Scheme::projection(const std::string& name, int64_t out) {
  return register_module(
      name, Linear(E(), out, options_.projection_bias ? Bias::kYes : Bias::kNo, Init::normal(options_.init_deviation)));
}

Linear Scheme::memory_projection(const std::string& name, int64_t out) {
  return remembers(options_) ? projection(name, out) : Linear(nullptr);
}

Linear Scheme::key_projection(const std::string& name, int64_t out) {
  if (!remembers(options_)) return nullptr;
  const Bias present = key_bias_matters(options_) ? Bias::kYes : Bias::kInert;
  const Bias bias = options_.projection_bias ? present : Bias::kNo;
  return register_module(name, Linear(E(), out, bias, Init::normal(options_.init_deviation)));
}

Linear Scheme::output_projection() {
  return register_module("output", Linear(H() * D(), E(), options_.projection_bias ? Bias::kYes : Bias::kNo,
                                          Init::normal(options_.output_deviation)));
}

Tensor Scheme::split_heads(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor Scheme::join_heads(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor Scheme::rotated(const Tensor& x, int64_t first) const { return rotated(x, first, turned_width_); }

Tensor Scheme::rotated(const Tensor& x, int64_t first, int64_t period) const {
  if (!options_.rotary) return x;
  return rotate(x, {.first = first,
                    .tokens = x.size(2),
                    .width = turned_width_,
                    .period = period,
                    .base = options_.rotary_base,
                    .scaling = options_.rotary_scaling});
}

Tensor Scheme::normed_query(const Tensor& x) const { return query_norm_ == nullptr ? x : query_norm_->forward(x); }
Tensor Scheme::normed_key(const Tensor& x) const { return key_norm_ == nullptr ? x : key_norm_->forward(x); }

Tensor Scheme::values_of(const Linear& linear, const Tensor& y) const {
  return values_have_bias(options_) ? linear->forward(y) : linear_map(y, linear->weight);
}

Tensor Scheme::value_offset(const Linear& linear) const {
  return values_have_bias(options_) || !linear->bias.defined() ? Tensor() : linear->bias.view({-1, D()});
}

Tensor Scheme::add_value_offset(const Tensor& heads, const Tensor& offset, const Tensor& live) {
  if (!offset.defined()) return heads;
  const Tensor added = offset.unsqueeze(1);  // [H or 1, 1, Dv]
  if (!live.defined()) return heads + added;
  return heads + added * live.to(heads.scalar_type()).unsqueeze(1).unsqueeze(3);
}

namespace {

// Returns joined heads [B, T, H D] times the gate [B, T, H or H D], where there is one.
Tensor gated(const Tensor& joined, const Tensor& gate) {
  if (!gate.defined()) return joined;
  if (gate.size(2) == joined.size(2)) return joined * gate;
  return (joined.unflatten(2, {gate.size(2), -1}) * gate.unsqueeze(3)).flatten(2);
}

Tensor detached(const Tensor& x) { return x.defined() ? x.detach() : x; }

}  // namespace

Tensor Scheme::project_heads(const Linear& output, const Tensor& heads, const Tensor& offset, const Tensor& live,
                             const Posed& posed) const {
  HS_DCHECK(posed.gate.defined() == is_gated(), "a problem is merged with the gate of its layer");
  const auto read_of = [live](const Tensor& found, const Tensor& added, const Tensor& gate) {
    return gated(join_heads(add_value_offset(found, added, live)), gate);
  };
  const Tensor read = read_of(heads, offset, posed.gate);
  const Tensor projected = output->forward(read);
  if (!offset.defined() && !is_gated()) return projected;  // it read the heads themselves, which attention keeps
  const auto again = [read_of, kept = heads.detach(), added = detached(offset), gate = detached(posed.gate)] {
    return read_of(kept, added, gate).contiguous();
  };
  return made_again(read, {heads, offset, posed.gate, live}, again, projected);
}

std::shared_ptr<Scheme> in_double(const Scheme& scheme) { return in_double(scheme, scheme.options()); }

std::shared_ptr<Scheme> in_double(const Scheme& scheme, const AttentionOptions& options) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Scheme> copy = make_scheme(options);
  const std::vector<Declared> from = declared_parameters(scheme);
  if (!from.empty()) copy->to(from.front().tensor.device());
  copy->to(at::kDouble);
  const std::vector<Declared> to = declared_parameters(*copy);
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  copy->eval();
  return copy;
}

}  // namespace headshare
