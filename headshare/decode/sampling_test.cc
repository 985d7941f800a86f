#include "headshare/decode/sampling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace sampling_test {

using Logits = std::vector<float>;
using Tokens = std::vector<int32_t>;

// The logits are ln of 0.5, 0.25, 0.15, 0.1, so that their softmax is known.
const Logits kLogits = {std::log(0.5F), std::log(0.25F), std::log(0.15F), std::log(0.1F)};

std::map<int32_t, double> distribution(const SamplingOptions& options, const Logits& logits = kLogits,
                                       const Tokens& history = {}) {
  std::map<int32_t, double> result;
  for (const Candidate& one : next_candidates(options, logits, history)) result[one.token] = one.probability;
  return result;
}

void expect_distribution(const std::map<int32_t, double>& actual, const std::map<int32_t, double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [token, probability] : expected) {
    ASSERT_TRUE(actual.contains(token)) << token;
    EXPECT_NEAR(actual.at(token), probability, 1e-6) << token;
  }
}

TEST(SamplingTest, PlainSoftmax) { expect_distribution(distribution({}), {{0, 0.5}, {1, 0.25}, {2, 0.15}, {3, 0.1}}); }

TEST(SamplingTest, TemperatureIsAPowerOfTheProbabilities) {
  const double sum = 0.25 + 0.0625 + 0.0225 + 0.01;
  expect_distribution(distribution({.temperature = 0.5}),
                      {{0, 0.25 / sum}, {1, 0.0625 / sum}, {2, 0.0225 / sum}, {3, 0.01 / sum}});
}

TEST(SamplingTest, TopKKeepsTies) {
  expect_distribution(distribution({.top_k = 2}), {{0, 2.0 / 3}, {1, 1.0 / 3}});
  expect_distribution(distribution({.top_k = 2}, {1, 0, 1, 1}), {{0, 1.0 / 3}, {2, 1.0 / 3}, {3, 1.0 / 3}});
  EXPECT_EQ(distribution({.top_k = 1000}).size(), 4u);
  EXPECT_EQ(distribution({.top_k = 4}).size(), 4u);
}

TEST(SamplingTest, TopPKeepsTheTokenThatCrosses) {
  expect_distribution(distribution({.top_p = 0.6}), {{0, 2.0 / 3}, {1, 1.0 / 3}});
  expect_distribution(distribution({.top_p = 0.8}), {{0, 0.5 / 0.9}, {1, 0.25 / 0.9}, {2, 0.15 / 0.9}});
  expect_distribution(distribution({.top_p = 0}), {{0, 1.0}});
  expect_distribution(distribution({.top_p = 0}, {2, 2, 2}), {{0, 1.0}});
  EXPECT_EQ(distribution({.top_p = 1}).size(), 4u);
  EXPECT_EQ(distribution({.top_p = 1}, Logits(1000, 0.0F)).size(), 1000u);
  EXPECT_EQ(distribution({.top_p = 1}, {50, 0}).size(), 2u);  // though the first is 1 in double precision
}

TEST(SamplingTest, MinPIsRelativeToTheBest) {
  expect_distribution(distribution({.min_p = 0.29}), {{0, 0.5 / 0.9}, {1, 0.25 / 0.9}, {2, 0.15 / 0.9}});
  expect_distribution(distribution({.min_p = 1}), {{0, 1.0}});
}

TEST(SamplingTest, FiltersApplyInOrder) {
  // top-k 3 leaves 5/9, 2.5/9, 1.5/9; top-p 0.8 of that keeps two (5/9 + 2.5/9 = 0.83). Before top-k it
  // would have kept three.
  expect_distribution(distribution({.top_k = 3, .top_p = 0.8}), {{0, 2.0 / 3}, {1, 1.0 / 3}});
  // Temperature comes before top-p: at 0.5 the best token alone holds 0.72.
  expect_distribution(distribution({.temperature = 0.5, .top_p = 0.7}), {{0, 1.0}});
}

TEST(SamplingTest, RepetitionPenaltyShrinksBothSigns) {
  const Logits logits = {2, -1, 0.5};
  const double sum = std::exp(1.0) + std::exp(-2.0) + std::exp(0.5);
  expect_distribution(distribution({.repetition_penalty = 2}, logits, {0, 1, 1, 0}),
                      {{0, std::exp(1.0) / sum}, {1, std::exp(-2.0) / sum}, {2, std::exp(0.5) / sum}});
}

TEST(SamplingTest, GreedyTakesTheLowestOfTheBestAndHonoursThePenalty) {
  expect_distribution(distribution({.greedy = true}, {1, 3, 3}), {{1, 1.0}});
  expect_distribution(distribution({.temperature = 0}, {1, 3, 2}), {{1, 1.0}});
  expect_distribution(distribution({.greedy = true, .repetition_penalty = 4}, {1, 3, 2}, {1}), {{2, 1.0}});
}

TEST(SamplingTest, ForbiddenTokensNeverCome) {
  expect_distribution(distribution({}, {-INFINITY, 1, -INFINITY, 1}), {{1, 0.5}, {3, 0.5}});
  expect_distribution(distribution({.top_k = 3, .repetition_penalty = 2}, {-INFINITY, 1, -INFINITY}, {0}), {{1, 1.0}});
}

TEST(SamplingTest, HugeLogitsDoNotOverflow) {
  expect_distribution(distribution({}, {3e38F, 3e38F, -3e38F}), {{0, 0.5}, {1, 0.5}});
  expect_distribution(distribution({.temperature = 1e-300}, {1, 2}), {{1, 1.0}});
}

TEST(SamplingTest, BadLogitsAreErrorsThatNameTheToken) {
  EXPECT_THAT(error_message([] { next_candidates({}, Logits{0, NAN}, {}); }), testing::HasSubstr("token 1 is nan"));
  EXPECT_THAT(error_message([] { next_candidates({.greedy = true}, Logits{INFINITY}, {}); }),
              testing::HasSubstr("token 0 is inf"));
  EXPECT_THAT(error_message([] {
                next_candidates({}, Logits{-INFINITY, -INFINITY}, {});
              }),
              testing::HasSubstr("all 2 tokens are forbidden"));
  EXPECT_THAT(error_message([] { next_candidates({}, Logits{}, {}); }), testing::HasSubstr("no logits"));
  EXPECT_THAT(error_message([] { next_candidates({.repetition_penalty = 2}, kLogits, Tokens{4}); }),
              testing::HasSubstr("token 4 of the text so far is outside the vocabulary of 4"));
}

TEST(SamplingTest, BadOptionsAreErrors) {
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.top_k = -1}), Error);
  EXPECT_THROW(Sampler({.top_p = 1.1}), Error);
  EXPECT_THROW(Sampler({.min_p = -0.1}), Error);
  EXPECT_THROW(Sampler({.repetition_penalty = 0}), Error);
}

TEST(SamplingTest, DrawsFollowTheDistribution) {
  constexpr int kDraws = 40000;
  Sampler sampler({.top_p = 0.8, .seed = 5});
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.next(kLogits, {})];
  EXPECT_EQ(counts.size(), 3u);
  for (const auto& [token, p] : distribution({.top_p = 0.8})) {
    EXPECT_NEAR(counts[token], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << token;
  }
}

TEST(SamplingTest, TheSeedAndTheSequenceDecide) {
  const auto draw = [](int64_t seed, uint64_t sequence) {
    Sampler sampler({.seed = seed}, sequence);
    Tokens tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.next(kLogits, {}));
    return tokens;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
}

// A position where only one token is possible uses up its random number like any other.
TEST(SamplingTest, ATokensRandomNumberDependsOnItsPlaceAlone) {
  Sampler plain({.seed = 3});
  Sampler forced({.seed = 3});
  plain.next(kLogits, {});
  forced.next(Logits{-INFINITY, 1}, {});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(plain.next(kLogits, {}), forced.next(kLogits, {}));
}

TEST(SamplingTest, OptionsHaveFields) {
  SamplingOptions options;
  Fields list = fields(options);
  set_field(list, "top_k", "40", "test");
  set_field(list, "min-p", "0.05", "test");
  set_field(list, "stop", "###,END", "test");
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.min_p, 0.05);
  EXPECT_THAT(options.stop, testing::ElementsAre("###", "END"));
  EXPECT_THROW(set_field(list, "top-p", "1.5", "test"), Error);
  const std::vector<std::string> names = {"greedy", "temperature",    "top-k", "top-p", "min-p", "repetition-penalty",
                                          "seed",   "max-new-tokens", "stop"};
  for (const std::string& name : names) EXPECT_NE(find_field(list, name), nullptr) << name;
}

}  // namespace sampling_test
}  // namespace headshare
