#include "headshare/metrics/correlation.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "headshare/base/testing.h"
#include "headshare/metrics/metric.h"

namespace headshare {
namespace {

using Numbers = std::vector<double>;
using testing::AllOf;
using testing::HasSubstr;

TEST(CorrelationTest, ByHand) {
  const Numbers x = {1, 2, 3, 4};
  const Numbers y = {1, 3, 2, 4};
  EXPECT_NEAR(pearson({x, y}).value, 0.8, 1e-15);
  EXPECT_NEAR(spearman({x, y}).value, 0.8, 1e-15);
  const Numbers cubes = {1, 27, 8, 64};
  EXPECT_NEAR(spearman({x, cubes}).value, 0.8, 1e-15);
  EXPECT_EQ(pearson({x, y}).signature, "pearson|examples:4");
}

TEST(CorrelationTest, EqualNumbersShareTheirRank) {
  const Numbers x = {1, 2, 2, 3};
  const Numbers y = {1, 2, 3, 4};
  // The ranks are 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(spearman({x, y}).value, 4.5 / std::sqrt(4.5 * 5), 1e-15);
}

TEST(CorrelationTest, PerfectIsOneAndHugeNumbersDoNotOverflow) {
  const Numbers x = {-1e300, 3e299, 1e300};
  const Numbers minus = {1e300, -3e299, -1e300};
  EXPECT_NEAR(pearson({x, x}).value, 1, 1e-15);
  EXPECT_NEAR(pearson({x, minus}).value, -1, 1e-15);
  EXPECT_LE(pearson({x, x}).value, 1);
}

TEST(CorrelationTest, NoSpreadHasNoCorrelation) {
  const Numbers x = {1, 2, 3};
  const Numbers flat = {2.5, 2.5, 2.5};
  EXPECT_TRUE(std::isnan(pearson({x, flat}).value));
  EXPECT_THAT(pearson({x, flat}).note, HasSubstr("all predicted numbers are the same"));
  EXPECT_TRUE(std::isnan(spearman({flat, x}).value));
  EXPECT_THAT(spearman({flat, x}).note, HasSubstr("all gold numbers are the same"));
  const Outcomes outcomes{.gold_numbers = x, .predicted_numbers = flat};
  EXPECT_TRUE(std::isnan(task_score(measure({Metric::kPearson, Metric::kSpearman}, outcomes))));
}

TEST(CorrelationTest, WhatCannotBePairedIsRefused) {
  const Numbers one = {1};
  const Numbers two = {1, 2};
  const Numbers infinite = {1, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(error_message([&] { pearson({two, one}); }), HasSubstr("1 predictions for 2 examples"));
  EXPECT_THAT(error_message([&] { spearman({one, one}); }), HasSubstr("at least 2 examples, not 1"));
  EXPECT_THAT(error_message([&] { pearson({two, infinite}); }), AllOf(HasSubstr("example 1"), HasSubstr("inf")));
}

TEST(MetricTest, ATaskAveragesItsScores) {
  const Outcomes outcomes{.gold = {1, 1, 0, 0}, .predicted = {1, 0, 0, 0}};
  const std::vector<Score> scores = measure({Metric::kAccuracy, Metric::kF1}, outcomes);
  ASSERT_EQ(scores.size(), 2);
  EXPECT_EQ(scores[0].name, "accuracy");
  EXPECT_DOUBLE_EQ(scores[1].value, 2.0 / 3);
  EXPECT_DOUBLE_EQ(task_score(scores), (0.75 + 2.0 / 3) / 2);
}

}  // namespace
}  // namespace headshare
