#include "headshare/attention/schemes/gqa.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <set>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {

Gqa::Gqa(const AttentionOptions& options, const HeadCounts& counts)
    : Scheme(options),
      counts_(counts),
      query_(projection("query", counts.query * D())),
      key_(key_projection("key", counts.key * D())),
      value_(memory_projection("value", counts.value * D())),
      output_(output_projection()) {
  declare_shift(counts.key, counts.value);
}

Tensor Gqa::project_queries(const Tensor& x, int64_t first) const {
  return rotated(normed_query(split_heads(query_->forward(x), counts_.query)), first);
}

Memory Gqa::project_memory(const Tensor& y, int64_t first) const {
  return kept(normed_key(split_heads(key_->forward(y), counts_.key)), split_heads(values_of(value_, y), counts_.value),
              first);
}

HeadProblem Gqa::pose(const Tensor& queries, const Memory& memory, Form) const {
  return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
}

Tensor Gqa::merge(const Posed& posed, const Tensor& heads, const Tensor& live) const {
  Tensor bias = value_offset(value_);
  if (bias.defined()) bias = bias.repeat_interleave(H() / counts_.value, 0);
  return project_heads(output_, heads, bias, live, posed);
}

// Heads that read the same maps are one head, whose output maps add up. Where all heads compare the same, what they do
// between averaging and output is one map of E x E.
AttentionCost Gqa::own_cost() const {
  const int64_t comparisons = E() * D() * counts_.query + of_memory(E() * D() * counts_.key);
  const int64_t values = of_memory(E() * D() * counts_.value);
  const int64_t parameters = comparisons + values + E() * H() * D();
  const bool one_comparison = counts_.query == 1 && counts_.key == 1 && !outputs_differ();
  const int64_t outputs = E() * D() * (outputs_differ() ? H() : distinct_heads());
  const int64_t after = one_comparison ? std::min(values + outputs, E() * E()) : values + outputs;
  return {.parameters = parameters,
          .effective = comparisons + after,
          .cache_elements = (counts_.key + counts_.value) * D()};
}

int64_t Gqa::distinct_heads() const {
  std::set<std::array<int64_t, 3>> heads;
  for (int64_t h = 0; h < H(); ++h) {
    heads.insert({h * counts_.query / H(), h * counts_.key / H(), h * counts_.value / H()});
  }
  return static_cast<int64_t>(heads.size());
}

namespace {
namespace gqa {

HeadCounts counts_of(const AttentionOptions& resolved) {
  const GqaOptions& own = resolved.own.get<GqaOptions>();
  return {.query = own.query_heads.value_or(resolved.heads),
          .key = own.key_heads.value_or(*own.groups),
          .value = own.value_heads.value_or(*own.groups)};
}

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  return std::make_shared<Gqa>(options, counts_of(options));
}

std::string sizes(const AttentionOptions& options) {
  const HeadCounts counts = counts_of(options);
  if (counts.query == options.heads && counts.key == counts.value) return join_text(counts.key, " groups");
  return join_text("query heads ", counts.query, ", key heads ", counts.key, ", value heads ", counts.value);
}

Fields fields(GqaOptions& o) {
  const auto count = [](const std::string& name, std::optional<int64_t>* target, const std::string& help) {
    return field(name, target, help, {.min = 1, .max = 1 << 16, .since = 10});
  };
  return {
      field("groups", &o.groups, "key/value groups of gqa; auto: the smallest divisor of heads >= max(2, heads / 4)",
            {.min = 1, .max = 1 << 16, .aliases = {"num-key-value-heads"}}),
      count("query-heads", &o.query_heads, "query maps of gqa, which heads share; auto: one for each head"),
      count("key-heads", &o.key_heads, "key maps of gqa; auto: one for each group"),
      count("value-heads", &o.value_heads, "value maps of gqa; auto: one for each group")};
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

std::string why_not(const AttentionOptions& resolved) {
  const auto& own = resolved.own.get<GqaOptions>();
  const std::pair<const char*, std::optional<int64_t>> given[] = {
      {"query", own.query_heads}, {"key", own.key_heads}, {"value", own.value_heads}};
  for (const auto& [name, count] : given) {
    if (!count || resolved.heads % *count == 0) continue;
    return join_text(name, "-heads must divide heads: ", resolved.heads, " heads, ", *count, " maps; set --", name,
                     "-heads to a divisor of ", resolved.heads);
  }
  return "";
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
          .reads = {"kv-shift", "key-offset"},
          .why_not = gqa::why_not,
          .sizes = gqa::sizes};
}

}  // namespace headshare
