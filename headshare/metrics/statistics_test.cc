#include "headshare/metrics/statistics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"

namespace headshare {
namespace {

using Values = std::vector<double>;

TEST(StatisticsTest, Summaries) {
  const Values values = {4, 1, 3, 2};
  const Summary summary = summarize(values);
  EXPECT_EQ(summary.count, 4);
  EXPECT_EQ(summary.mean, 2.5);
  EXPECT_NEAR(*summary.deviation, std::sqrt(5.0 / 3.0), 1e-15);
  EXPECT_EQ(summary.median, 2.5);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 4);
  EXPECT_EQ(median(Values{5, 1, 3}), 3);
}

TEST(StatisticsTest, OneValueHasNoSpreadAndNoneIsAnError) {
  const Values one = {7};
  EXPECT_EQ(summarize(one).mean, 7);
  EXPECT_FALSE(sample_deviation(one));
  EXPECT_FALSE(mean_interval(one));
  EXPECT_FALSE(ratio_interval(one, one));
  EXPECT_THROW(ratio_interval(Values{1, 2}, one), Error);
  EXPECT_THROW(mean(Values{}), Error);
  EXPECT_THROW(summarize(Values{}), Error);
  EXPECT_THROW(median(Values{1, std::numeric_limits<double>::quiet_NaN()}), Error);
}

// The critical values of Student's t are from printed tables: t(0.975; 1) = 12.7062, t(0.975; 4) = 2.77645, t(0.95; 4)
// = 2.13185.
TEST(StatisticsTest, StudentIntervals) {
  const Values five = {1, 2, 3, 4, 5};
  const double error = std::sqrt(2.5) / std::sqrt(5.0);
  EXPECT_NEAR(mean_interval(five)->high, 3 + 2.77645 * error, 1e-5);
  EXPECT_NEAR(mean_interval(five, 0.9)->low, 3 - 2.13185 * error, 1e-5);
  EXPECT_NEAR(mean_interval(Values{0, 2})->high, 1 + 12.7062 * 1, 1e-4);
  EXPECT_THROW(mean_interval(five, 95), Error);
}

// This checks the definition itself: at both ends the paired t-test of numerator - r * denominator is exactly at its
// critical value, that is, its interval ends at 0.
TEST(StatisticsTest, FiellersIntervalEndsWhereTheTestDoes) {
  const Values top = {80.1, 80.9, 80.6, 79.8};
  const Values bottom = {79.0, 79.5, 79.1, 78.2};
  const std::optional<Interval> interval = ratio_interval(top, bottom);
  ASSERT_TRUE(interval.has_value());
  for (const bool low_end : {true, false}) {
    const double r = low_end ? interval->low : interval->high;
    Values rest(top.size());
    for (size_t i = 0; i < top.size(); ++i) rest[i] = top[i] - r * bottom[i];
    EXPECT_NEAR(low_end ? mean_interval(rest)->low : mean_interval(rest)->high, 0, 1e-11);
  }
  EXPECT_FALSE(ratio_interval(Values{1, 2}, Values{-1, 1.1}));
}

// With 4000 normal samples of three correlated pairs, 95% of the intervals hold the true ratio, to five standard
// deviations. (The delta method with normal quantiles reaches 81%.)
TEST(StatisticsTest, FiellersIntervalCoversWithThreeSeeds) {
  constexpr int kTrials = 4000;
  Philox random(stream_key(3, "coverage"));
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Values top(3);
    Values bottom(3);
    for (size_t i = 0; i < 3; ++i) {
      const double shared = random.normal();
      bottom[i] = 80 + shared;
      top[i] = 72 + 0.8 * shared + 0.5 * random.normal();
    }
    const std::optional<Interval> interval = ratio_interval(top, bottom);
    if (interval && interval->low <= 0.9 && 0.9 <= interval->high) ++covered;
  }
  EXPECT_NEAR(covered, 0.95 * kTrials, 5 * std::sqrt(kTrials * 0.95 * 0.05));
}

// The expected t is scipy.stats.t.ppf(1 - 0.025 / 2, 2 * 4 / 3) = 4.58925, for a pooled deviation of 0.1 and a larger
// one of the second list.
TEST(JudgeDifferencesTest, TheLargerOfOwnAndPooledDeviationCounts) {
  const auto judged = judge_differences({{0.9, 1.0, 1.1}, {2.0, 2.2, 2.4}, {5, 6}});
  ASSERT_TRUE(judged[0] && judged[1]);
  EXPECT_FALSE(judged[2]);  // two values judge nothing
  const double pooled = std::sqrt((0.01 + 0.04) / 2);
  EXPECT_NEAR(judged[0]->deviation, pooled, 1e-12);
  EXPECT_NEAR(judged[1]->deviation, 0.2, 1e-12);
  EXPECT_EQ(judged[0]->compared, 2u);
  const double t = 4.58925040;
  EXPECT_NEAR(judged[0]->interval.low, 1 - t * pooled / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(judged[1]->interval.high, 2.2 + t * 0.2 / std::sqrt(3.0), 1e-6);
}

// One list alone is a paired t-test; the expected numbers are those of scipy 1.17.1, stats.ttest_rel and its
// confidence_interval().
TEST(JudgeDifferencesTest, OneListIsAPairedTest) {
  const Values first = {5.1, 4.9, 6.2, 5.8, 5.5, 6.0};
  const Values second = {4.8, 5.0, 5.9, 5.1, 5.2, 5.6};
  Values list(first.size());
  for (size_t i = 0; i < list.size(); ++i) list[i] = first[i] - second[i];
  const auto judged = judge_differences({list})[0];
  EXPECT_NEAR(judged->p_value, 0.0291830710458, 1e-9);
  EXPECT_NEAR(judged->interval.low, 0.047743451498, 1e-9);
  EXPECT_NEAR(judged->interval.high, 0.585589881835, 1e-9);
  EXPECT_NEAR(mean_interval(list)->low, 0.047743451498, 1e-9);
}

TEST(JudgeDifferencesTest, ThePValueAgreesWithTheInterval) {
  for (const double shift : {0.0, 0.1, 0.2, 0.3, 0.4, 0.6}) {
    const auto judged = judge_differences({{shift, shift + 0.1, shift - 0.1}, {0, 0.1, -0.1}})[0];
    const bool inside = judged->interval.low <= 0 && judged->interval.high >= 0;
    EXPECT_EQ(judged->p_value >= 0.05, inside) << shift;
  }
  EXPECT_EQ(judge_differences({{0, 0, 0}})[0]->p_value, 1);
  EXPECT_EQ(judge_differences({{1, 1, 1}})[0]->p_value, 0);
}

// Eight variants differ in nothing from a reference, with three seeds: of 4000 comparisons at most 5% (to five standard
// deviations) find a difference, also where one variant scatters five times as much. Each alone at 95% finds one in
// 25%.
TEST(JudgeDifferencesTest, FindsNoDifferenceWhereThereIsNone) {
  constexpr int kTrials = 4000;
  for (const double last : {1.0, 5.0}) {
    Philox random(stream_key(7, "judged"));
    int wrong = 0;
    int wrong_alone = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Values reference(3);
      for (double& value : reference) value = random.normal();
      std::vector<Values> lists(8, Values(3));
      for (size_t i = 0; i < lists.size(); ++i) {
        for (size_t seed = 0; seed < 3; ++seed) {
          lists[i][seed] = (i == 7 ? last : 1.0) * random.normal() - reference[seed];
        }
      }
      const auto errs = [](const Interval& one) { return one.low > 0 || one.high < 0; };
      const auto judged = judge_differences(lists);
      wrong += std::any_of(judged.begin(), judged.end(), [&](const auto& one) { return errs(one->interval); }) ? 1 : 0;
      wrong_alone +=
          std::any_of(lists.begin(), lists.end(), [&](const auto& one) { return errs(*mean_interval(one)); });
    }
    EXPECT_LT(wrong, 0.05 * kTrials + 5 * std::sqrt(kTrials * 0.05 * 0.95)) << last;
    EXPECT_GT(wrong_alone, 0.2 * kTrials);
  }
}

TEST(JudgeDifferencesTest, SaysHowManyValuesANarrowerIntervalNeeds) {
  const auto judged = *judge_differences({{0.9, 1.0, 1.1}, {0.2, 0.3, 0.4}})[0];
  const auto half = [](const JudgedDifference& one) { return (one.interval.high - one.interval.low) / 2; };
  EXPECT_EQ(values_needed(judged, half(judged) + 1e-9, 100), 3);
  const auto more = values_needed(judged, half(judged) / 3, 100);
  ASSERT_TRUE(more);
  EXPECT_GT(*more, 6);  // at once less of a t and more values: not nine times as many
  EXPECT_LT(*more, 20);
  EXPECT_FALSE(values_needed(judged, half(judged) / 1000, 100));
}

TEST(StatisticsTest, TheBootstrapRepeatsItselfAndFindsTheStandardError) {
  Philox random(11);
  Values values(400);
  for (double& value : values) value = 3 + random.normal();
  const auto resampled_mean = [&](std::span<const int64_t> indices) {
    double sum = 0;
    for (const int64_t index : indices) sum += values[static_cast<size_t>(index)];
    return sum / static_cast<double>(indices.size());
  };
  const auto interval = bootstrap_interval(400, resampled_mean, {.resamples = 4000, .seed = 1});
  const auto again = bootstrap_interval(400, resampled_mean, {.resamples = 4000, .seed = 1});
  const auto other = bootstrap_interval(400, resampled_mean, {.resamples = 4000, .seed = 2});
  EXPECT_EQ(interval->low, again->low);
  EXPECT_NE(interval->low, other->low);
  // For a mean of 400 values the percentile interval is the normal one, to the error of a 2.5% quantile of 4000 draws
  // (5 standard deviations of it are about 0.19 standard errors).
  const double error = *sample_deviation(values) / 20;
  EXPECT_NEAR(interval->low, mean(values) - 1.96 * error, 0.25 * error);
  EXPECT_NEAR(interval->high, mean(values) + 1.96 * error, 0.25 * error);
  EXPECT_FALSE(bootstrap_interval(1, resampled_mean));
  EXPECT_THROW(bootstrap_interval(2, resampled_mean, {.resamples = 0}), Error);
}

// With two examples a resampled mean is 0, 1/2 or 1 (probabilities 1/4, 1/2, 1/4): a 40% interval
// lies at 1/2, a 60% one reaches both ends.
TEST(StatisticsTest, BootstrapOfTwoExamples) {
  const auto share_of_second = [](std::span<const int64_t> indices) {
    return static_cast<double>(indices[0] + indices[1]) / 2;
  };
  const auto narrow = bootstrap_interval(2, share_of_second, {.confidence = 0.4, .resamples = 2000});
  const auto wide = bootstrap_interval(2, share_of_second, {.confidence = 0.6, .resamples = 2000});
  EXPECT_EQ(narrow->low, 0.5);
  EXPECT_EQ(narrow->high, 0.5);
  EXPECT_EQ(wide->low, 0);
  EXPECT_EQ(wide->high, 1);
}

TEST(StatisticsTest, ZeroHasNoSign) {
  EXPECT_EQ(interval_text({-0.004, 0.004}, 2), "[0.00, 0.00]");
  EXPECT_EQ(interval_text({-0.004, -0.006}, 2, /*with_sign=*/true), "[+0.00, -0.01]");
}

}  // namespace
}  // namespace headshare
