#include "headshare/attention/options.h"

#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"

namespace headshare {

const EnumNames<DropoutMaskKind>& dropout_mask_names() {
  static const EnumNames<DropoutMaskKind> names = {
      {DropoutMaskKind::kPerHead, "per_head"},
      {DropoutMaskKind::kShared, "shared"},
  };
  return names;
}

Fields fields(AttentionOptions& o) {
  Fields list = {
      field("head-width", &o.head_width, "width of one head; auto: d-model / heads", {.min = 1, .max = 1 << 16}),
      field("key-width", &o.key_width,
            "query/key width of a whole layer; auto: heads x head-width for mha, d-model / 2 for collaborative",
            {.min = 1, .max = 1 << 20}),
      field("attention-scale", &o.scale, "factor on the scores; auto: 1 / sqrt(head width)", {.min = 0}),
      field("projection-bias", &o.projection_bias, "biases on the query, key, value and output projections"),
      field("content-bias", &o.content_bias, "a learned score per (head, key token), in any scheme"),
      field("qk-norm", &o.qk_norm,
            "RMS norms over each query and key before they are compared, with a weight per dimension", {.since = 4}),
  };
  for (const auto& scheme : scheme_records()) {
    if (scheme->options.fields != nullptr) append(&list, scheme->options.fields(o));
  }
  append(&list, {field("attention-dropout", &o.attention_dropout, "dropout on the attention weights",
                       {.min = 0, .max = 0.99, .aliases = {"attention-probs-dropout-prob", "attn-pdrop"}}),
                 field("attention-dropout-mask", &o.attention_dropout_mask,
                       "a mask for each head, or one shared by all heads (mhe_add trains faster with that)",
                       dropout_mask_names())});
  return list;
}

namespace {

void check_sizes(const AttentionOptions& o, const SchemeRecord& scheme) {
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
  HS_CHECK(*o.head_width >= 1, "head-width must be at least 1, not ", *o.head_width);
  if (scheme.set_defaults != nullptr) scheme.set_defaults(&o);
  if (!o.key_width) o.key_width = o.heads * *o.head_width;
  HS_CHECK(*o.key_width >= 1, "key-width must be at least 1, not ", *o.key_width);
  for (const auto& one : scheme_records()) {
    if (one->options.fill_in != nullptr) one->options.fill_in(&o);
  }
  check_sizes(o, scheme);
  if (!o.scale) o.scale = 1.0 / std::sqrt(static_cast<double>(*o.head_width));
  return o;
}

}  // namespace headshare
