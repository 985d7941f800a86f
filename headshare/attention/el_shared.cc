// EL-ATT as the MHE paper trains it, in our reading (docs/mathematics.md#ambiguous-readings): the hidden state itself
// is key and value.
//   q_h = x W_Q^h, k_h = v_h = columns h D .. (h + 1) D of y; cache: y: E per token
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"

namespace headshare {
namespace {

class ElShared : public Scheme {
 public:
  explicit ElShared(const AttentionOptions& options)
      : Scheme(options), query_(projection("query", H() * D())), output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t) const override {
    return split_heads(query_->forward(x), H());  // [B, H, T, D]
  }

  Tensor merge(const Tensor& heads, const Tensor&) const override { return output_->forward(join_heads(heads)); }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {split_heads(y, H())}; }  // [B, H, S, D]

  HeadProblem pose(const Tensor& queries, const Memory& memory) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 2 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = E()};
  }

 private:
  Linear query_, output_;
};

}  // namespace

std::shared_ptr<Scheme> make_el_shared(const AttentionOptions& options) { return std::make_shared<ElShared>(options); }

}  // namespace headshare
