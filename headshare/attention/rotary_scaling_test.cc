#include "headshare/attention/rotary_scaling.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/attention/rotary.h"
#include "headshare/attention/testing.h"

namespace headshare {
namespace {
namespace rotary_scaling_test {

using testing::AllOf;
using testing::HasSubstr;

std::string scaling_refusal(const RotaryScaling& scaling, double base = 10000) {
  try {
    resolve(scaling, base);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_frequencies(const RotaryScaling& given, double base, int64_t width) {
  const RotaryScaling scaling = resolve(given, base);
  const RotaryFrequencies found = rotary_frequencies(width, base, scaling);
  ASSERT_EQ(found.frequencies.sizes(), at::IntArrayRef({width / 2}));
  for (int64_t i = 0; i < width / 2; ++i) {
    const double expected = formula_frequency(scaling, base, width, i);
    EXPECT_NEAR(found.frequencies[i].item<double>(), expected, 1e-14 * expected) << "pair " << i << " of " << width;
  }
}

TEST(RotaryScaling, FrequenciesFollowTheFormula) {
  for (const RotaryScaling& scaling : rotary_scalings()) {
    for (const double base : {10000.0, 500000.0, 17.0}) {
      for (const int64_t width : {2, 4, 12, 64, 128}) expect_frequencies(scaling, base, width);
    }
  }
}

// Llama 3.1 8B: of 64 pairs 29 keep their speed, 6 lie between, and 29 turn 8 times slower.
TEST(RotaryScaling, LlamasPairsFallIntoThreeParts) {
  const RotaryScaling scaling{.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 8192};
  expect_frequencies(scaling, 500000, 128);
  const Tensor plain = rotary_frequencies(128, 500000, {}).frequencies;
  const Tensor ratio = rotary_frequencies(128, 500000, scaling).frequencies / plain;
  EXPECT_EQ(ratio.eq(1).sum().item<int64_t>(), 29);
  EXPECT_EQ(ratio.sub(0.125).abs().lt(1e-15).sum().item<int64_t>(), 29);
}

TEST(RotaryScaling, OddOptionsOfYarnFollowTheFormulaToo) {
  RotaryScaling scaling{.kind = RotaryScalingKind::kYarn, .factor = 2.5, .original_context = 4096};
  expect_frequencies(scaling, 10000, 128);
  scaling.original_context = 3;  // no pair turns even once: the ramp ends before it begins
  expect_frequencies(scaling, 10000, 16);
  scaling.original_context = 1 << 24;  // every pair turns often: the ramp begins behind the last pair
  expect_frequencies(scaling, 10, 16);
  scaling = {.kind = RotaryScalingKind::kYarn, .factor = 0.5, .original_context = 64, .beta_fast = 2, .beta_slow = 2};
  for (const bool truncate : {true, false}) {
    scaling.truncate = truncate;
    expect_frequencies(scaling, 100, 12);
  }
}

TEST(RotaryScaling, TheAttentionFactorIsThatOfTransformers) {
  const auto factor = [](RotaryScaling scaling) {
    return rotary_frequencies(8, 10000, resolve(std::move(scaling), 10000)).factor;
  };
  EXPECT_EQ(factor({}), 1);
  EXPECT_EQ(factor({.kind = RotaryScalingKind::kLinear, .factor = 4}), 1);
  EXPECT_EQ(factor({.kind = RotaryScalingKind::kLlama3, .factor = 4, .original_context = 9}), 1);
  EXPECT_EQ(factor({.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 9}), 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(factor({.kind = RotaryScalingKind::kYarn, .factor = 0.5, .original_context = 9}), 1);
  EXPECT_EQ(factor({.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 9, .attention_factor = 0.75}),
            0.75);
  EXPECT_EQ(yarn_attention_factor(40, 1, 1), 1);
  EXPECT_DOUBLE_EQ(yarn_attention_factor(40, 0.707, 2), (0.0707 * std::log(40.0) + 1) / (0.2 * std::log(40.0) + 1));
  EXPECT_EQ(yarn_attention_factor(40, 0.707, 0), yarn_attention_factor(40));
  EXPECT_EQ(yarn_attention_factor(40, 0, 0.707), yarn_attention_factor(40));
}

TEST(RotaryScaling, MissingAndImpossibleOptionsNameTheWayOut) {
  EXPECT_THAT(scaling_refusal({.kind = RotaryScalingKind::kLinear}),
              AllOf(HasSubstr("linear"), HasSubstr("--rotary-factor")));
  EXPECT_THAT(scaling_refusal({.kind = RotaryScalingKind::kLinear, .factor = 0}), HasSubstr("above 0, not 0"));
  for (const RotaryScalingKind kind : {RotaryScalingKind::kLlama3, RotaryScalingKind::kYarn}) {
    EXPECT_THAT(scaling_refusal({.kind = kind, .factor = 2}), HasSubstr("--rotary-original-context"));
  }
  EXPECT_THAT(scaling_refusal(
                  {.kind = RotaryScalingKind::kLlama3, .factor = 2, .original_context = 8, .low_frequency_factor = 4}),
              HasSubstr("above rotary-low-frequency-factor, not 4 and 4"));
  RotaryScaling yarn{.kind = RotaryScalingKind::kYarn, .factor = 2, .original_context = 8};
  EXPECT_THAT(scaling_refusal(yarn, /*base=*/1), HasSubstr("--rotary-base above 1"));
  yarn.beta_slow = 33;
  EXPECT_THAT(scaling_refusal(yarn), HasSubstr("not 32 and 33"));
}

TEST(RotaryScaling, OptionsThatItsKindDoesNotReadAreIdle) {
  const auto idle = [](RotaryScalingKind kind) {
    std::vector<std::string> names;
    for (const IdleOption& one : idle_scaling_options({.kind = kind})) names.push_back(one.name);
    return names;
  };
  EXPECT_EQ(idle(RotaryScalingKind::kNone).size(), 8U);
  EXPECT_EQ(idle(RotaryScalingKind::kLinear).size(), 7U);
  EXPECT_THAT(idle(RotaryScalingKind::kLlama3), testing::ElementsAre("rotary-beta-fast", "rotary-beta-slow",
                                                                     "rotary-attention-factor", "rotary-truncate"));
  EXPECT_THAT(idle(RotaryScalingKind::kYarn),
              testing::ElementsAre("rotary-low-frequency-factor", "rotary-high-frequency-factor"));
  const RotaryScaling resolved = resolve({.factor = 4, .truncate = false}, 10000);
  EXPECT_EQ(resolved, RotaryScaling()) << "nothing is left for checkpoints to carry";
}

}  // namespace rotary_scaling_test
}  // namespace
}  // namespace headshare
