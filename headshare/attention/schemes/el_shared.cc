// This is EL-ATT as the MHE paper trains it, in our reading (docs/mathematics.md#ambiguous-readings): the hidden state
// itself is key and value.
//   q_h = x W_Q^h, k_h = v_h = columns h D .. (h + 1) D of y; cache: y: E per token
// With `averaged_values`, the other reading of its count: keys are projected, y is every head's value, and the mean of
// the heads is the output.
//   q_h = x W_Q^h, k_h = y W_K^h, v_h = y, out = sum_h A_h y / H; cache: H D + E per token
#include <ATen/ATen.h>

#include "headshare/attention/hidden_states.h"
#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

class ElShared : public Scheme {
 public:
  explicit ElShared(const AttentionOptions& options)
      : Scheme(options, KeysNormed::kWhenRead), query_(projection("query", H() * D())), output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t) const override {
    return normed_query(split_heads(query_->forward(x), H()));  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor&) const override {
    return project_heads(output_, heads, /*offset=*/{}, /*live=*/{}, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {split_heads(y, H())}; }  // [B, H, S, D]

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = normed_key(memory[0]), .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 2 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = E()};
  }

 private:
  Linear query_, output_;
};

class ElAveraged : public Scheme {
 public:
  explicit ElAveraged(const AttentionOptions& options)
      : Scheme(options), query_(projection("query", H() * D())), key_(key_projection("key", H() * D())) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_->forward(x), H())), first);  // [B, H, T, D]
  }

  Tensor merge(const Posed&, const Tensor& heads, const Tensor&) const override { return heads.mean(1); }  // [B, T, E]

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return {rotated(normed_key(split_heads(key_->forward(y), H())), first), y.unsqueeze(1)};
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = E() * H() * D() + of_memory(E() * H() * D());
    return {.parameters = parameters, .effective = parameters, .cache_elements = H() * D() + E()};
  }

 private:
  Linear query_, key_;
};

}  // namespace

std::string why_not_hidden_states(const AttentionOptions& o) {
  if (!o.rotary) return "";
  return o.scheme +
         " keeps raw hidden states as keys, which rotary positions cannot be applied to; use --positions learned, "
         "sinusoidal or alibi";
}

namespace {

struct ElSharedOptions {
  bool averaged_values = false;  // keys are projected, hidden states are values, heads averaged
};

namespace el_shared {

Fields fields(ElSharedOptions& o) {
  return {field("averaged-values", &o.averaged_values,
                "el_shared projects keys, takes whole hidden states for values and averages the heads")};
}

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  if (options.own.get<ElSharedOptions>().averaged_values) return std::make_shared<ElAveraged>(options);
  return std::make_shared<ElShared>(options);
}

std::string why_not(const AttentionOptions& o) {
  if (o.own.get<ElSharedOptions>().averaged_values) {
    if (o.gate == OutputGate::kNone) return "";
    return "--averaged-values has no output projection that a gate could stand before; leave --output-gate out";
  }
  if (o.heads * *o.head_width == o.d_model) return why_not_hidden_states(o);
  return join_text("el_shared cuts the model width into heads: ", o.heads, " heads x ", *o.head_width,
                   " must equal d-model ", o.d_model, "; leave --head-width at auto");
}

}  // namespace el_shared
}  // namespace

SchemeRecord el_shared_scheme() {
  return {.name = "el_shared",
          .sentence = "a head's keys and values are its slice of the hidden state",
          .paper = "Xue and Aletras, 2023, after Yan et al., 2021",
          .make = el_shared::make,
          .options = scheme_options<ElSharedOptions>(el_shared::fields),
          .why_not = el_shared::why_not};
}

}  // namespace headshare
