#include "headshare/attention/gqa.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {

Gqa::Gqa(const AttentionOptions& options, int64_t groups)
    : Scheme(options),
      groups_(groups),
      query_(projection("query", H() * D())),
      key_(key_projection("key", groups * D())),
      value_(projection("value", groups * D())),
      output_(output_projection()) {}

Tensor Gqa::project_queries(const Tensor& x, int64_t first) const {
  return rotated(normed_query(split_heads(query_->forward(x), H())), first);
}

Memory Gqa::project_memory(const Tensor& y, int64_t first) const {
  return {rotated(normed_key(split_heads(key_->forward(y), groups_)), first),
          split_heads(without_bias(value_, y), groups_)};
}

HeadProblem Gqa::pose(const Tensor& queries, const Memory& memory, Form) const {
  return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
}

Tensor Gqa::merge(const Posed&, const Tensor& heads, const Tensor& live) const {
  Tensor bias;
  if (value_->bias.defined()) bias = value_->bias.view({groups_, D()}).repeat_interleave(H() / groups_, 0);
  return output_->forward(join_heads(add_value_offset(heads, bias, live)));
}

AttentionCost Gqa::own_cost() const {
  const int64_t parameters = 2 * E() * H() * D() + 2 * E() * groups_ * D();
  return {.parameters = parameters, .effective = parameters, .cache_elements = 2 * groups_ * D()};
}

namespace {
namespace gqa {

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  return std::make_shared<Gqa>(options, groups_of(options));
}

std::string sizes(const AttentionOptions& options) { return join_text(groups_of(options), " groups"); }

Fields fields(GqaOptions& o) {
  return {field("groups", &o.groups,
                "key/value groups of gqa; auto: the smallest divisor of heads >= max(2, heads / 4)",
                {.min = 1, .max = 1 << 16, .aliases = {"num-key-value-heads"}})};
}

// Returns the smallest divisor of `heads` that is at least max(2, heads / 4).
int64_t default_groups(int64_t heads) {
  for (int64_t groups = std::max<int64_t>(2, heads / 4); groups < heads; ++groups) {
    if (heads % groups == 0) return groups;
  }
  return heads;
}

void fill_in(AttentionOptions* options) {
  std::optional<int64_t>& groups = options->own.get<GqaOptions>().groups;
  const int64_t heads = options->heads;
  if (!groups) groups = default_groups(heads);
  HS_CHECK(*groups >= 1, "groups must be at least 1, not ", *groups);
  HS_CHECK(*groups <= heads && heads % *groups == 0, "groups must divide heads: ", heads, " heads, ", *groups,
           " groups; set --groups to a divisor of ", heads);
}

}  // namespace gqa
}  // namespace

SchemeRecord gqa_scheme() {
  SchemeOptions options = scheme_options<GqaOptions>(gqa::fields);
  options.fill_in = gqa::fill_in;
  return {.name = "gqa",
          .sentence = "groups of heads share keys and values",
          .paper = "Ainslie et al., 2023",
          .make = gqa::make,
          .options = options,
          .sizes = gqa::sizes};
}

}  // namespace headshare
