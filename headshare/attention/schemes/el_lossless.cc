// This is EL attention (Yan et al., 2021): multi-head attention rewritten for inference. It has the same weights and
// the same result, but the raw hidden states are cached instead of keys and values.
//   q'_h = x W_Q^h (W_K^h)^T [E wide], key = value = y, head_h = (A_h y) W_V^h; cache: y: E per token
// It spends H times the score and value products of `mha` to read less memory (docs/mathematics.md#el_lossless).
#include <ATen/ATen.h>

#include "headshare/attention/hidden_states.h"
#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/mha.h"

namespace headshare {
namespace {

class ElLossless : public Mha {
 public:
  using Mha::Mha;

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor key_maps = key_->weight.view({H(), R() / H(), E()});  // W_K^h transposed, per head
    return Mha::project_queries(x, first).matmul(key_maps);            // [B, H, T, E]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    const Tensor value_maps = value_->weight.view({H(), D(), E()}).transpose(1, 2);  // [H, E, D]
    return Mha::merge(posed, heads.matmul(value_maps), live);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {y.unsqueeze(1)}; }  // [B, 1, S, E]

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    AttentionCost cost = Mha::own_cost();
    cost.cache_elements = E();
    return cost;
  }
};

}  // namespace

namespace {
namespace el_lossless {

std::string why_not(const AttentionOptions& o) {
  if (o.memory != MemoryUse::kOwn) {
    return "el_lossless keeps hidden states, of which each layer would make keys and values of its own, so that layers "
           "with --share-kv-layers would share none; choose --scheme mha, or leave --share-kv-layers out";
  }
  if (o.qk_norm)
    return "el_lossless puts keys into queries, which --qk-norm has to norm apart; leave one of the two out";
  if (o.sinks && o.projection_bias) {
    return "el_lossless adds the biases of keys and values after averaging, which --attention-sinks has to weigh; "
           "leave one of the sinks and --projection-bias out";
  }
  const std::string reason = why_not_hidden_states(o);
  return reason.empty() ? why_not_mha(o) : reason;
}

}  // namespace el_lossless
}  // namespace

SchemeRecord el_lossless_scheme() {
  return {.name = "el_lossless",
          .sentence = "mha computed from cached hidden states: the same weights, the same result",
          .paper = "Yan et al., 2021",
          .make = make_as<ElLossless>,
          .reads = {"key-width"},
          .set_defaults = set_mha_defaults,
          .why_not = el_lossless::why_not,
          .compared_width = mha_compared_width,
          .weights_of = "mha"};
}

}  // namespace headshare
