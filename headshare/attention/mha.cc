#include "headshare/attention/mha.h"

#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"

namespace headshare {

Mha::Mha(const AttentionOptions& options)
    : Scheme(options),
      query_(projection("query", R())),
      key_(key_projection("key", R())),
      value_(projection("value", H() * D())),
      output_(output_projection()) {}

Tensor Mha::project_queries(const Tensor& x, int64_t first) const {
  return rotated(split_heads(query_->forward(x), H()), first);
}

Memory Mha::project_memory(const Tensor& y, int64_t first) const {
  return {rotated(split_heads(key_->forward(y), H()), first), split_heads(without_bias(value_, y), H())};
}

HeadProblem Mha::pose(const Tensor& queries, const Memory& memory) const {
  return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
}

Tensor Mha::value_bias() const { return value_->bias.defined() ? value_->bias.view({H(), D()}) : Tensor(); }

Tensor Mha::merge(const Tensor& heads, const Tensor& live) const {
  return output_->forward(join_heads(add_value_offset(heads, value_bias(), live)));
}

AttentionCost Mha::own_cost() const {
  const int64_t parameters = 2 * E() * R() + 2 * E() * H() * D();
  return {.parameters = parameters, .effective = parameters, .cache_elements = R() + H() * D()};
}

std::shared_ptr<Scheme> make_mha(const AttentionOptions& options) { return std::make_shared<Mha>(options); }

}  // namespace headshare
