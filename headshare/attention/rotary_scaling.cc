#include "headshare/attention/rotary_scaling.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

const EnumNames<RotaryScalingKind>& rotary_scaling_names() {
  static const EnumNames<RotaryScalingKind> names = {{RotaryScalingKind::kNone, "none"},
                                                     {RotaryScalingKind::kLinear, "linear"},
                                                     {RotaryScalingKind::kLlama3, "llama3"},
                                                     {RotaryScalingKind::kYarn, "yarn"}};
  return names;
}

bool needs_context(RotaryScalingKind kind) {
  return kind == RotaryScalingKind::kLlama3 || kind == RotaryScalingKind::kYarn;
}

// Returns a scaling that has what this kind reads, and else defaults.
RotaryScaling only_what_is_read(const RotaryScaling& all) {
  RotaryScaling read{.kind = all.kind};
  if (all.kind != RotaryScalingKind::kNone) read.factor = all.factor;
  if (needs_context(all.kind)) read.original_context = all.original_context;
  if (all.kind == RotaryScalingKind::kLlama3) {
    read.low_frequency_factor = all.low_frequency_factor;
    read.high_frequency_factor = all.high_frequency_factor;
  }
  if (all.kind == RotaryScalingKind::kYarn) {
    read.beta_fast = all.beta_fast;
    read.beta_slow = all.beta_slow;
    read.attention_factor = all.attention_factor;
    read.truncate = all.truncate;
  }
  return read;
}

double attention_scale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

void check_scaling(const RotaryScaling& o, const std::string& name, double base) {
  HS_CHECK(o.factor, "--rotary-scaling ", name, " needs a factor, how many times slower positions turn; set ",
           "--rotary-factor");
  HS_CHECK(*o.factor > 0 && std::isfinite(*o.factor), "rotary-factor must be above 0, not ", *o.factor);
  HS_CHECK(!needs_context(o.kind) || o.original_context, "--rotary-scaling ", name,
           " needs the context that the model had before; set --rotary-original-context to it, in tokens");
  HS_CHECK(o.high_frequency_factor > o.low_frequency_factor, "rotary-high-frequency-factor must be above ",
           "rotary-low-frequency-factor, not ", o.high_frequency_factor, " and ", o.low_frequency_factor);
  HS_CHECK(o.beta_slow > 0 && o.beta_fast >= o.beta_slow, "rotary-beta-fast must be at least rotary-beta-slow, which ",
           "is above 0, not ", o.beta_fast, " and ", o.beta_slow);
  HS_CHECK(o.kind != RotaryScalingKind::kYarn || base > 1, "--rotary-scaling yarn needs a --rotary-base above 1, not ",
           base, ": with 1 all pairs turn alike");
}

}  // namespace

double yarn_attention_factor(double factor, double mscale, double mscale_all_dim) {
  if (mscale == 0 || mscale_all_dim == 0) return attention_scale(factor, 1);
  return attention_scale(factor, mscale) / attention_scale(factor, mscale_all_dim);
}

Fields fields(RotaryScaling& o) {
  return {
      field("rotary-scaling", &o.kind,
            "slows rotary positions down for a longer context than the model was trained with", rotary_scaling_names(),
            {.since = 12}),
      field("rotary-factor", &o.factor, "how many times slower rotary positions turn", {.min = 0, .since = 12}),
      field("rotary-original-context", &o.original_context,
            "tokens of the context before llama3 or yarn scaled the rotation",
            {.min = 1, .max = 1 << 24, .aliases = {"original-max-position-embeddings"}, .since = 12}),
      field("rotary-low-frequency-factor", &o.low_frequency_factor,
            "llama3: pairs that turn less often within the original context are slowed down by the whole factor",
            {.min = 0, .aliases = {"low-freq-factor"}, .since = 12}),
      field("rotary-high-frequency-factor", &o.high_frequency_factor,
            "llama3: pairs that turn more often within the original context keep their speed",
            {.min = 0, .aliases = {"high-freq-factor"}, .since = 12}),
      field("rotary-beta-fast", &o.beta_fast,
            "yarn: pairs that turn more often within the original context keep their speed", {.min = 0, .since = 12}),
      field("rotary-beta-slow", &o.beta_slow,
            "yarn: pairs that turn less often within the original context are slowed down by the whole factor",
            {.min = 0, .since = 12}),
      field("rotary-attention-factor", &o.attention_factor,
            "yarn: on rotated queries and keys; auto: 0.1 ln(rotary-factor) + 1", {.min = 0, .since = 12}),
      field("rotary-truncate", &o.truncate, "yarn: the pairs of both betas are rounded to whole ones", {.since = 12}),
  };
}

IdleOptions idle_scaling_options(RotaryScaling scaling) {
  // The kind reads an option whose other value it keeps.
  RotaryScaling other{.kind = scaling.kind,
                      .factor = 2,
                      .original_context = 2,
                      .low_frequency_factor = 2,
                      .high_frequency_factor = 3,
                      .beta_fast = 3,
                      .beta_slow = 2,
                      .attention_factor = 2,
                      .truncate = false};
  RotaryScaling read = only_what_is_read(other);
  const Fields set = fields(other), kept = fields(read);
  const std::string kind = enum_name(rotary_scaling_names(), scaling.kind);
  IdleOptions idle;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i].value() != kept[i].value()) idle.push_back({set[i].name, "does nothing with --rotary-scaling " + kind});
  }
  return idle;
}

RotaryScaling resolve(RotaryScaling scaling, double base) {
  scaling = only_what_is_read(scaling);
  if (scaling.kind == RotaryScalingKind::kNone) return scaling;
  check_scaling(scaling, enum_name(rotary_scaling_names(), scaling.kind), base);
  const bool fills = scaling.kind == RotaryScalingKind::kYarn && !scaling.attention_factor;
  if (fills) scaling.attention_factor = yarn_attention_factor(*scaling.factor);
  return scaling;
}

}  // namespace headshare
