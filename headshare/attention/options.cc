#include "headshare/attention/options.h"

#include <algorithm>
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

namespace {

const EnumNames<OutputGate>& output_gate_names() {
  static const EnumNames<OutputGate> names = {
      {OutputGate::kNone, "none"}, {OutputGate::kHead, "head"}, {OutputGate::kElement, "element"}};
  return names;
}

}  // namespace

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
      field("output-gate", &o.gate,
            "a gate that the layer's input opens and closes on what heads found: one number per head, or per element",
            output_gate_names(), {.since = 11}),
      field("attention-sinks", &o.sinks,
            "a learned score per head of a key without a value, so that heads may look away", {.since = 11}),
      field("kv-shift", &o.kv_shift,
            "each head of keys and of values mixes a token and the one before, by two learned numbers", {.since = 15}),
      field("key-offset", &o.key_offset, "what --rotary-dimensions leave alone in a key is that of the token before",
            {.since = 15}),
      field("local-window", &o.window,
            "how many tokens a token sees on either side of itself (in a decoder: before it); auto: all",
            {.min = 1, .max = 1 << 24, .since = 12}),
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

Fields rotary_fields(AttentionOptions& o) {
  Fields list = {
      field("rotary-base", &o.rotary_base, "base of the rotary frequencies", {.min = 1, .aliases = {"rope-theta"}}),
      field("rotary-dimensions", &o.rotary_dimensions,
            "dimensions of each head that rotary positions turn, the last ones; auto: all",
            {.min = 2, .max = 1 << 20, .aliases = {"rotary-dim"}, .since = 12}),
  };
  append(&list, fields(o.rotary_scaling));
  return list;
}

namespace {

// Resolves the options that only rotary positions give a meaning.
void resolve_rotary(const SchemeRecord& scheme, AttentionOptions* o) {
  if (!o->rotary) {
    o->rotary_scaling = {};
    o->rotary_dimensions.reset();
    return;
  }
  o->rotary_scaling = resolve(o->rotary_scaling, o->rotary_base);
  if (!o->rotary_dimensions) return;
  HS_CHECK(scheme.rotated_width == nullptr, scheme.name,
           " chooses itself which dimensions turn; leave --rotary-dimensions out");
  const int64_t turned = *o->rotary_dimensions, width = compared_width(*o);
  HS_CHECK(turned >= 2 && turned % 2 == 0 && turned <= width, "rotary-dimensions must be even and at most the ", width,
           " in which a query is compared with a key, not ", turned,
           width >= 2 ? "; choose --rotary-dimensions among them" : "; choose wider heads (--head-width)");
  if (turned == width) o->rotary_dimensions.reset();
}

// Tells whether a scheme reads an option that not every scheme does.
bool reads(const SchemeRecord& scheme, const char* option) {
  return std::find(scheme.reads.begin(), scheme.reads.end(), option) != scheme.reads.end();
}

// Drops the options about the token before in schemes that do not read them, as key widths are.
void resolve_token_before(const SchemeRecord& scheme, AttentionOptions* o) {
  o->kv_shift = o->kv_shift && reads(scheme, "kv-shift");
  o->key_offset = o->key_offset && reads(scheme, "key-offset");
  if (!o->key_offset) return;
  const int64_t width = compared_width(*o);
  HS_CHECK(o->rotary && rotated_width(*o) < width,
           "key-offset takes the dimensions of a key that rotary positions leave alone from the token before, and ",
           o->rotary ? "all of them turn" : "there are no rotary positions",
           "; set --positions rotary and --rotary-dimensions below ", width, ", or leave --key-offset out");
}

void resolve_with_scheme(const SchemeRecord& scheme, AttentionOptions* options) {
  AttentionOptions& o = *options;
  const std::string reason = scheme.why_not == nullptr ? "" : scheme.why_not(o);
  HS_CHECK(reason.empty(), reason);
  resolve_rotary(scheme, &o);
  resolve_token_before(scheme, &o);
  const int64_t width = rotated_width(o);
  HS_CHECK(!o.rotary || width % 2 == 0, "rotary positions need an even key width, not ", width, "; change --head-width",
           reads(scheme, "key-width") ? " or --key-width" : "");
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
  resolve_with_scheme(scheme, &o);
  if (!o.scale) o.scale = 1.0 / std::sqrt(static_cast<double>(*o.head_width));
  return o;
}

}  // namespace headshare
