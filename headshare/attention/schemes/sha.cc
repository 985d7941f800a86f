// This is single-head attention, as the MHE paper counts it: one head of width D, tiled H times into a full O.
//   q = x W_Q, k = y W_K, v = y W_V, out = sum_h (A v) O_h; cache: 2 D per token
// Identical heads share everything, their dropout mask too.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/single_head.h"

namespace headshare {
namespace {

class Sha : public SingleHead {
 public:
  explicit Sha(const AttentionOptions& options) : SingleHead(options) { declare_shift(1, 1); }

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_->forward(x), 1)), first);  // [B, 1, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    const Tensor found = add_value_offset(heads, value_offset(value_), live);
    if (outputs_differ() || found.size(1) > 1) {  // as many as O has blocks: nothing to fold
      return project_heads(output_, found.expand({-1, H(), -1, -1}), /*offset=*/{}, /*live=*/{}, posed);
    }
    const Tensor joined = join_heads(found);
    // Tiling one head is the same as adding up the blocks of O: [E, H D] -> [E, D].
    const Tensor folded = output_->weight.view({E(), H(), D()}).sum(1);
    return linear_map(joined, folded, output_->bias);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    const Memory memory = shared_memory(y);
    return kept(memory[0], memory[1], first);
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = 1, .query = queries, .key = memory[0], .value = memory[1]};
  }

  AttentionCost own_cost() const override {
    const int64_t folded = 2 * E() * D() + of_memory(2 * E() * D());
    return {.parameters = shared_parameters(),
            .effective = outputs_differ() ? shared_parameters() : folded,
            .cache_elements = 2 * D()};
  }
};

}  // namespace

SchemeRecord sha_scheme() {
  return {.name = "sha",
          .sentence = "one head, repeated: all share queries, keys and values",
          .paper = "Xue and Aletras, 2023",
          .make = make_as<Sha>,
          .reads = {"kv-shift", "key-offset"}};
}

}  // namespace headshare
