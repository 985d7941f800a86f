#include "headshare/attention/options.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/nearest.h"

namespace headshare {

const EnumNames<SchemeKind>& scheme_names() {
  static const EnumNames<SchemeKind> names = {
      {SchemeKind::kMha, "mha"},
      {SchemeKind::kGqa, "gqa"},
      {SchemeKind::kMqa, "mqa"},
      {SchemeKind::kSha, "sha"},
      {SchemeKind::kSkv, "skv"},
      {SchemeKind::kElShared, "el_shared"},
      {SchemeKind::kElLossless, "el_lossless"},
      {SchemeKind::kMheAdd, "mhe_add"},
      {SchemeKind::kMheMul, "mhe_mul"},
      {SchemeKind::kCollaborative, "collaborative"},
  };
  return names;
}

std::string scheme_name(SchemeKind kind) {
  for (const auto& [value, name] : scheme_names()) {
    if (value == kind) return name;
  }
  return "";
}

SchemeKind parse_scheme(const std::string& name) {
  SchemeKind kind = SchemeKind::kMha;
  field("scheme", &kind, "", scheme_names()).parse(name);
  return kind;
}

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
      field("shared-qk", &o.shared_qk, "skv shares queries and keys instead of keys and values"),
      field("mhe-deviation", &o.mhe_deviation,
            "head embeddings start from N(0, this squared); auto: 0.1 for mhe_add, 0.5 for mhe_mul",
            {.min = 0, .max = 10}),
      field("mhe-mul-offset", &o.mhe_mul_offset, "mhe_mul multiplies by (offset + embedding)", {.min = 0, .max = 1}),
      field("mixing-deviation", &o.mixing_deviation, "collaborative mixing starts from N(0, this squared)",
            {.min = 0, .max = 10}),
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

void check_sizes(const AttentionOptions& o) {
  const int64_t heads_width = o.heads * *o.head_width;
  if (o.scheme == SchemeKind::kElShared) {
    HS_CHECK(heads_width == o.d_model, "el_shared cuts the model width into heads: ", o.heads, " heads x ",
             *o.head_width, " must equal d-model ", o.d_model, "; leave --head-width at auto");
  }
  if (o.scheme == SchemeKind::kElShared || o.scheme == SchemeKind::kElLossless) {
    HS_CHECK(!o.rotary, scheme_name(o.scheme),
             " keeps raw hidden states as keys, which rotary positions cannot be applied to; use --positions learned, "
             "sinusoidal or alibi");
  }
  HS_CHECK(*o.groups <= o.heads && o.heads % *o.groups == 0, "groups must divide heads: ", o.heads, " heads, ",
           *o.groups, " groups; set --groups to a divisor of ", o.heads);
  const bool narrowed = o.scheme == SchemeKind::kMha || o.scheme == SchemeKind::kElLossless;
  HS_CHECK(!narrowed || *o.key_width % o.heads == 0, "key-width must be a multiple of heads: ", *o.key_width, " and ",
           o.heads, "; set --key-width to a multiple of ", o.heads);
  const int64_t rotated_width = o.scheme == SchemeKind::kCollaborative ? *o.key_width
                                : narrowed                             ? *o.key_width / o.heads
                                                                       : *o.head_width;
  HS_CHECK(!o.rotary || rotated_width % 2 == 0, "rotary positions need an even key width, not ", rotated_width,
           "; change --head-width or --key-width");
}

}  // namespace

AttentionOptions resolve(AttentionOptions o) {
  HS_CHECK(o.d_model >= 1 && o.heads >= 1, "d-model and heads must be at least 1, not ", o.d_model, " and ", o.heads);
  if (!o.head_width) {
    HS_CHECK(o.d_model % o.heads == 0, "heads must divide d-model: ", o.d_model, " / ", o.heads, " leaves ",
             o.d_model % o.heads, "; choose --heads among the divisors of ", o.d_model, " or set --head-width");
    o.head_width = o.d_model / o.heads;
  }
  if (!o.groups) o.groups = default_groups(o.heads);
  const bool collaborative = o.scheme == SchemeKind::kCollaborative;
  HS_CHECK(*o.head_width >= 1 && *o.groups >= 1, "head-width and groups must be at least 1, not ", *o.head_width,
           " and ", *o.groups);
  if (!o.key_width) o.key_width = collaborative ? std::max<int64_t>(2, o.d_model / 4 * 2) : o.heads * *o.head_width;
  HS_CHECK(*o.key_width >= 1, "key-width must be at least 1, not ", *o.key_width);
  check_sizes(o);
  // Measured: docs/design/021-where-head-embeddings-start.md.
  if (!o.mhe_deviation) o.mhe_deviation = o.scheme == SchemeKind::kMheMul ? 0.5 : 0.1;
  if (!o.scale) {
    const bool narrowed = o.scheme == SchemeKind::kMha || o.scheme == SchemeKind::kElLossless;
    o.scale = 1.0 / std::sqrt(static_cast<double>(narrowed ? *o.key_width / o.heads : *o.head_width));
  }
  return o;
}

}  // namespace headshare
