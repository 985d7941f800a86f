// EL-ATT as the MHE paper trains it, in our reading (docs/mathematics.md#ambiguous-readings): the hidden state itself
// is key and value.
//   q_h = x W_Q^h, k_h = v_h = columns h D .. (h + 1) D of y; cache: y: E per token
#include <ATen/ATen.h>

#include "headshare/attention/hidden_states.h"
#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

class ElShared : public Scheme {
 public:
  explicit ElShared(const AttentionOptions& options)
      : Scheme(options), query_(projection("query", H() * D())), output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t) const override {
    return normed_query(split_heads(query_->forward(x), H()));  // [B, H, T, D]
  }

  Tensor merge(const Tensor& heads, const Tensor&) const override { return output_->forward(join_heads(heads)); }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {split_heads(y, H())}; }  // [B, H, S, D]

  HeadProblem pose(const Tensor& queries, const Memory& memory) const override {
    return {.heads = H(), .query = queries, .key = normed_key(memory[0]), .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 2 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = E()};
  }

 private:
  Linear query_, output_;
};

}  // namespace

std::string why_not_hidden_states(const AttentionOptions& o) {
  if (!o.rotary) return "";
  return o.scheme +
         " keeps raw hidden states as keys, which rotary positions cannot be applied to; use --positions learned, "
         "sinusoidal or alibi";
}

namespace {

std::string why_not(const AttentionOptions& o) {
  if (o.heads * *o.head_width == o.d_model) return why_not_hidden_states(o);
  return join_text("el_shared cuts the model width into heads: ", o.heads, " heads x ", *o.head_width,
                   " must equal d-model ", o.d_model, "; leave --head-width at auto");
}

}  // namespace

SchemeRecord el_shared_scheme() {
  return {.name = "el_shared",
          .sentence = "a head's keys and values are its slice of the hidden state",
          .paper = "Xue and Aletras, 2023, after Yan et al., 2021",
          .make = make_as<ElShared>,
          .why_not = why_not};
}

}  // namespace headshare
