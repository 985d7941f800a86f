#include "headshare/attention/options.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"

namespace headshare {

namespace {

constexpr double kMixingDeviation = 1;  // measured: docs/design/027-where-mixing-starts.md

}  // namespace

const EnumNames<DropoutMaskKind>& dropout_mask_names() {
  static const EnumNames<DropoutMaskKind> names = {
      {DropoutMaskKind::kPerHead, "per_head"},
      {DropoutMaskKind::kShared, "shared"},
  };
  return names;
}

Fields fields(AttentionOptions& o) {
  return {
      field("head-width", &o.head_width, "width of one head; auto: d-model / heads", {.min = 1, .max = 1 << 16}),
      field("groups", &o.groups, "key/value groups of gqa; auto: the smallest divisor of heads >= max(2, heads / 4)",
            {.min = 1, .max = 1 << 16, .aliases = {"num-key-value-heads"}}),
      field("key-width", &o.key_width,
            "query/key width of a whole layer; auto: heads x head-width for mha, d-model / 2 for collaborative",
            {.min = 1, .max = 1 << 20}),
      field("attention-scale", &o.scale, "factor on the scores; auto: 1 / sqrt(head width)", {.min = 0}),
      field("projection-bias", &o.projection_bias, "biases on the query, key, value and output projections"),
      field("content-bias", &o.content_bias, "a learned score per (head, key token), in any scheme"),
      field("qk-norm", &o.qk_norm,
            "RMS norms over each query and key before they are compared, with a weight per dimension"),
      field("averaged-values", &o.averaged_values,
            "el_shared projects keys, takes whole hidden states for values and averages the heads"),
      field("shared-qk", &o.shared_qk, "skv shares queries and keys instead of keys and values"),
      field("mhe-deviation", &o.mhe_deviation,
            "head embeddings start from N(0, this squared); auto: 0.02 for mhe_add, 0.5 for mhe_mul",
            {.min = 0, .max = 10}),
      field("mhe-mul-offset", &o.mhe_mul_offset, "mhe_mul multiplies by (offset + embedding)", {.min = 0, .max = 1}),
      field("mixing-deviation", &o.mixing_deviation,
            join_text("collaborative mixing starts from N(0, this squared); auto: ", kMixingDeviation),
            {.min = 0, .max = 10}),
      field("rotary-width", &o.rotary_width,
            "collaborative mixes pairs of dimensions as complex numbers, which turn as in rotary heads of this width; "
            "auto: every dimension by itself",
            {.min = 2, .max = 1 << 16}),
      field("attention-dropout", &o.attention_dropout, "dropout on the attention weights",
            {.min = 0, .max = 0.99, .aliases = {"attention-probs-dropout-prob", "attn-pdrop"}}),
      field("attention-dropout-mask", &o.attention_dropout_mask,
            "a mask for each head, or one shared by all heads (mhe_add trains faster with that)", dropout_mask_names()),
  };
}

namespace {

// The smallest divisor of `heads` that is at least max(2, heads / 4).
int64_t default_groups(int64_t heads) {
  for (int64_t groups = std::max<int64_t>(2, heads / 4); groups < heads; ++groups) {
    if (heads % groups == 0) return groups;
  }
  return heads;
}

void check_sizes(const AttentionOptions& o, const SchemeRecord& scheme) {
  HS_CHECK(*o.groups <= o.heads && o.heads % *o.groups == 0, "groups must divide heads: ", o.heads, " heads, ",
           *o.groups, " groups; set --groups to a divisor of ", o.heads);
  const std::string reason = scheme.why_not == nullptr ? "" : scheme.why_not(o);
  HS_CHECK(reason.empty(), reason);
  const int64_t width = rotated_width(o);
  HS_CHECK(!o.rotary || width % 2 == 0, "rotary positions need an even key width, not ", width,
           "; change --head-width or --key-width");
}

}  // namespace

AttentionOptions resolve(AttentionOptions o) {
  const SchemeRecord& scheme = scheme_record(o.scheme);
  HS_CHECK(o.d_model >= 1 && o.heads >= 1, "d-model and heads must be at least 1, not ", o.d_model, " and ", o.heads);
  if (!o.head_width) {
    HS_CHECK(o.d_model % o.heads == 0, "heads must divide d-model: ", o.d_model, " / ", o.heads, " leaves ",
             o.d_model % o.heads, "; choose --heads among the divisors of ", o.d_model, " or set --head-width");
    o.head_width = o.d_model / o.heads;
  }
  if (!o.groups) o.groups = default_groups(o.heads);
  HS_CHECK(*o.head_width >= 1 && *o.groups >= 1, "head-width and groups must be at least 1, not ", *o.head_width,
           " and ", *o.groups);
  if (scheme.set_defaults != nullptr) scheme.set_defaults(&o);
  if (!o.key_width) o.key_width = o.heads * *o.head_width;
  HS_CHECK(*o.key_width >= 1, "key-width must be at least 1, not ", *o.key_width);
  check_sizes(o, scheme);
  if (!o.mixing_deviation) o.mixing_deviation = kMixingDeviation;
  if (!o.mhe_deviation) o.mhe_deviation = 0.02;  // measured: docs/design/021-where-head-embeddings-start.md
  if (!o.scale) o.scale = 1.0 / std::sqrt(static_cast<double>(*o.head_width));
  return o;
}

}  // namespace headshare
