#include "headshare/attention/schemes/mha.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {

Mha::Mha(const AttentionOptions& options)
    : Scheme(options),
      query_(projection("query", R())),
      key_(key_projection("key", R())),
      value_(memory_projection("value", H() * D())),
      output_(output_projection()) {
  declare_shift(H(), H());
}

Tensor Mha::project_queries(const Tensor& x, int64_t first) const {
  return rotated(normed_query(split_heads(query_->forward(x), H())), first);
}

Memory Mha::project_memory(const Tensor& y, int64_t first) const {
  return kept(normed_key(split_heads(key_->forward(y), H())), split_heads(values_of(value_, y), H()), first);
}

HeadProblem Mha::pose(const Tensor& queries, const Memory& memory, Form) const {
  return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
}

Tensor Mha::merge(const Posed& posed, const Tensor& heads, const Tensor& live) const {
  return project_heads(output_, heads, value_offset(value_), live, posed);
}

AttentionCost Mha::own_cost() const {
  const int64_t values = E() * H() * D();
  const int64_t parameters = E() * R() + of_memory(E() * R() + values) + values;
  return {.parameters = parameters, .effective = parameters, .cache_elements = R() + H() * D()};
}

void set_mha_defaults(AttentionOptions* o) {
  if (!o->key_width) o->key_width = o->heads * *o->head_width;
  if (!o->scale) o->scale = 1.0 / std::sqrt(static_cast<double>(mha_compared_width(*o)));
}

std::string why_not_mha(const AttentionOptions& o) {
  if (*o.key_width % o.heads == 0) return "";
  return join_text("key-width must be a multiple of heads: ", *o.key_width, " and ", o.heads,
                   "; set --key-width to a multiple of ", o.heads);
}

int64_t mha_compared_width(const AttentionOptions& o) { return *o.key_width / o.heads; }

SchemeRecord mha_scheme() {
  return {.name = "mha",
          .sentence = "every head has its own queries, keys and values",
          .paper = "Vaswani et al., 2017",
          .make = make_as<Mha>,
          .reads = {"key-width", "kv-shift", "key-offset"},
          .set_defaults = set_mha_defaults,
          .why_not = why_not_mha,
          .compared_width = mha_compared_width};
}

}  // namespace headshare
