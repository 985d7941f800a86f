// Scaled rotations slow rotary positions down, so that a model goes beyond the context that it was trained with
// (docs/mathematics.md#positions). The formulas are those of transformers 5 (modeling_rope_utils.py).
#pragma once

#include <cstdint>
#include <optional>

#include "headshare/base/options/field.h"
#include "headshare/base/options/idle_option.h"

namespace headshare {

// kLinear slows all pairs down alike (Chen et al., 2023), kLlama3 those with long wavelengths (Llama 3.1), kYarn those
// that turn less often than some number of times (Peng et al., YaRN, 2023).
enum class RotaryScalingKind { kNone, kLinear, kLlama3, kYarn };

struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::kNone;
  std::optional<double> factor = {};             // how many times slower a pair turns at most; every kind needs it
  std::optional<int64_t> original_context = {};  // C, in tokens; llama3 and yarn need it
  double low_frequency_factor = 1;   // llama3: pairs that turn less often than this within C are slowed down
  double high_frequency_factor = 4;  // llama3: pairs that turn more often than this within C keep their speed
  double beta_fast = 32;             // yarn: pairs that turn so often within C keep their speed
  double beta_slow = 1;              // yarn: pairs that turn so often within C are slowed down
  std::optional<double> attention_factor = {};  // yarn: on cosines and sines; default yarn_attention_factor(factor)
  bool truncate = true;  // yarn: the pairs of both betas are rounded to whole ones, away from each other

  bool operator==(const RotaryScaling& other) const = default;
};

// Returns the attention factor that transformers derives: 0.1 m ln(factor) + 1 with m = mscale, divided by the same
// with m = mscale_all_dim; 0.1 ln(factor) + 1 where one of the two is 0, which means absent. A factor up to 1 gives 1.
double yarn_attention_factor(double factor, double mscale = 0, double mscale_all_dim = 0);

Fields fields(RotaryScaling& scaling);

// Lists the options that this kind of scaling does not read.
IdleOptions idle_scaling_options(RotaryScaling scaling);

// Puts options that the kind does not read back to their defaults, fills in the attention factor, and checks the rest.
// Throws Error.
RotaryScaling resolve(RotaryScaling scaling, double base);

}  // namespace headshare
