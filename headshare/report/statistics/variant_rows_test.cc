#include "headshare/report/statistics/variant_rows.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"

namespace headshare {
namespace {

using ::testing::HasSubstr;

// This is P / P_SHA - 1 of mha.
constexpr double kGrowth = static_cast<double>(kMhaParameters - kShaParameters) / kShaParameters;

// There are mha, sha and a scheme that uses mha's weights, with one seed each.
class SummariseOneSeedTest : public testing::Test {
 protected:
  const std::vector<VariantRow> rows_ = [] {
    Results results =
        loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2), loss_cell("el_lossless", 0, 2.0)});
    results.cells[2].weights_of = "mha";
    results.cells[2].training_tokens_per_second = 0;
    return summarise(results);
  }();
  const VariantRow& mha_ = rows_.at(0);
  const VariantRow& sha_ = rows_.at(1);
  const VariantRow& el_ = rows_.at(2);
};

TEST_F(SummariseOneSeedTest, HasARowForEachScheme) { EXPECT_EQ(rows_.size(), 3u); }

TEST_F(SummariseOneSeedTest, ValuesAreTheirFormulas) {
  const double ratio = std::exp(2.2) / std::exp(2.0);
  EXPECT_DOUBLE_EQ(mha_.best.quality.mean, std::exp(2.0));
  EXPECT_DOUBLE_EQ(*mha_.prr.value, 100);
  EXPECT_DOUBLE_EQ(*sha_.prr.value, 100 * (2 - ratio));
  EXPECT_DOUBLE_EQ(*mha_.peop.value, (1 - std::exp(2.0) / std::exp(2.2)) / kGrowth);
  EXPECT_THAT(sha_.peop.reason_undefined, HasSubstr("reference"));
}

TEST_F(SummariseOneSeedTest, LooksCertainOfNothing) {
  EXPECT_EQ(sha_.best.quality_interval_rule, "no interval: one seed");
  EXPECT_FALSE(sha_.best.quality_interval);
  EXPECT_FALSE(sha_.prr.interval);
  EXPECT_FALSE(sha_.against_reference->interval());
  EXPECT_FALSE(sha_.against_reference->p_value());
  EXPECT_EQ(sha_.against_reference->test, "no interval: it takes 3 seeds");
}

// Translations are scored on a sample of sentences: how far another sample would be off is known of one model.
TEST(SummariseTranslations, OneSeedHasAnIntervalOverSentences) {
  Results results = accuracy_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.0)});
  results.subject.block = "sentences";
  std::vector<double>& blocks = results.cells[0].blocks;
  blocks = std::vector<double>(100, 30);
  for (size_t i = 0; i < 50; ++i) blocks[i] = 40;  // mean 35, deviation 5: a standard error of 0.5
  results.cells[1].blocks = blocks;
  const SettingRow best = summarise(results).at(0).best;
  ASSERT_TRUE(best.quality_interval);
  EXPECT_NEAR(best.quality_interval->low, 34.02, 0.15);
  EXPECT_NEAR(best.quality_interval->high, 35.98, 0.15);
  EXPECT_THAT(best.quality_interval_rule, HasSubstr("bootstrap interval over sentences"));
}

// The intervals of scores that have their own are 10 wide, around 50, 53 and 56.
std::vector<ScoreRow> summarised_scores(int64_t seeds) {
  Results results = accuracy_results({});
  for (int64_t seed = 0; seed < seeds; ++seed) {
    Cell cell = loss_cell("mha", seed, 2.0);
    const double value = 50 + 3 * static_cast<double>(seed);
    cell.scores = {{.name = "chrf", .value = value, .interval = Interval{.low = value - 5, .high = value + 5}}};
    results.cells.push_back(cell);
    results.planned.push_back(cell.key);
  }
  return summarise(results).at(0).best.scores;
}

TEST(SummariseScores, UpToTwoSeedsTakeTheIntervalOfEach) {
  const std::vector<ScoreRow> rows = summarised_scores(2);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_TRUE(rows[0].interval);
  EXPECT_DOUBLE_EQ(rows[0].interval->low, 46.5);
  EXPECT_DOUBLE_EQ(rows[0].interval->high, 56.5);
}

TEST(SummariseScores, ThreeSeedsTakeWhatTheyScatter) {
  const std::optional<Interval> interval = summarised_scores(3).at(0).interval;
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 53 - 4.302653 * 3 / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(interval->high, 53 + 4.302653 * 3 / std::sqrt(3.0), 1e-5);
}

TEST_F(SummariseOneSeedTest, DifferencesToTheReferenceArePairedByBlocks) {
  EXPECT_FALSE(mha_.against_reference);
  EXPECT_THAT(mha_.why_no_difference, HasSubstr("reference"));
  ASSERT_TRUE(sha_.against_reference);
  EXPECT_NEAR(sha_.against_reference->mean, 0.2, 1e-12);
  EXPECT_FALSE(sha_.against_reference->over_seeds);
  // Every block differs by 0.2, so every resample does.
  ASSERT_TRUE(sha_.against_reference->over_blocks);
  EXPECT_NEAR(sha_.against_reference->over_blocks->low, 0.2, 1e-12);
  EXPECT_NEAR(sha_.against_reference->over_blocks->high, 0.2, 1e-12);
}

TEST_F(SummariseOneSeedTest, ASchemeThatUsesOtherWeightsHasTheirQualityAndItsOwnCache) {
  EXPECT_FALSE(el_.trained());
  EXPECT_EQ(el_.against_reference->mean, 0);
  EXPECT_EQ(*el_.prr.value, 100);
  EXPECT_EQ(el_.training_tokens_per_second, 0);
  EXPECT_EQ(el_.size.cache_bytes_per_token, 64);
  EXPECT_EQ(*el_.attention_memory_saved_percent, 25);
  EXPECT_EQ(*mha_.attention_memory_saved_percent, 0);
}

TEST(SummariseTest, TheMeanOfSeedsHasTheirInterval) {
  Results results = accuracy_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.0), loss_cell("mha", 2, 2.0)});
  for (size_t i = 0; i < 3; ++i) results.cells[i].quality = 0.7 + 0.1 * static_cast<double>(i);
  const SettingRow best = summarise(results)[0].best;
  EXPECT_EQ(best.quality_interval_rule, "95% Student t interval over 3 seeds");
  // There are two degrees of freedom: 4.302653 deviations of the mean.
  EXPECT_NEAR(best.quality_interval->low, 0.8 - 4.302653 * 0.1 / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(best.quality_interval->high, 0.8 + 4.302653 * 0.1 / std::sqrt(3.0), 1e-6);
}

TEST(SummariseTest, SeedsArePairedByTheirNumber) {
  // mha failed with seed 1: its seeds 0 and 2 meet those of sha, not its seed 2 the seed 1 of sha.
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 2, 2.02), loss_cell("sha", 0, 2.1),
                                  loss_cell("sha", 1, 9.0), loss_cell("sha", 2, 2.32)});
  add_failed(&results, {"mha", "", 1}, "killed");
  const std::vector<VariantRow> rows = summarise(results);
  const VariantRow& sha = rows[1];
  EXPECT_EQ(sha.best.seeds, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(sha.best.quality.count, 3);
  ASSERT_TRUE(sha.against_reference);
  EXPECT_EQ(sha.against_reference->seeds, 2);
  EXPECT_NEAR(sha.against_reference->mean, 0.2, 1e-12);  // of 0.1 and 0.3
  ASSERT_TRUE(sha.against_reference->over_seeds);
  EXPECT_NEAR(sha.against_reference->over_seeds->high, 0.2 + 12.7062 * 0.1, 1e-4);  // t(1) 0.975 x deviation / sqrt 2
  EXPECT_NEAR(sha.against_reference->over_blocks->high, 0.2, 1e-12);
  EXPECT_FALSE(sha.against_reference->interval());
  const double mean_ratio = (std::exp(2.1) + std::exp(2.32)) / (std::exp(2.0) + std::exp(2.02));
  EXPECT_NEAR(*sha.prr.value, 100 * (2 - mean_ratio), 1e-9);
  EXPECT_FALSE(sha.prr.interval);
  EXPECT_THAT(sha.prr.interval_rule, HasSubstr("two seeds may agree by luck"));
  EXPECT_EQ(rows[0].failed.size(), 1u);
  EXPECT_EQ(rows[0].best.planned, 3);
  EXPECT_EQ(sha.training_tokens_per_second, 769);  // the median
}

TEST(SummariseTest, SixSeedsGiveAPValue) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 6; ++seed) {
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("sha", seed, 2.1 + 0.01 * static_cast<double>(seed)));
  }
  Results results = loss_results(cells);
  const auto p_value = [&] { return summarise(results)[1].against_reference->p_value(); };
  ASSERT_TRUE(p_value());
  const double once = *p_value();
  EXPECT_LT(once, 0.001);
  results.looks = {3, 6};  // two looks: an interval at 98.75 %
  EXPECT_NEAR(*p_value(), 4 * once, 1e-12);
  cells.resize(10);
  EXPECT_FALSE(summarise(loss_results(cells))[1].against_reference->p_value());
}

// Two differences are judged together: wider than each alone. A variant that is not trained is none of them.
TEST(SummariseTest, DifferencesAreJudgedTogether) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const double noise = 0.01 * static_cast<double>(seed - 1);
    for (const char* scheme : {"mha", "el_lossless"}) cells.push_back(loss_cell(scheme, seed, 2.0));
    cells.back().weights_of = "mha";
    cells.push_back(loss_cell("mqa", seed, 2.1 + noise));
    cells.push_back(loss_cell("sha", seed, 2.2 - noise));
  }
  const std::vector<VariantRow> rows = summarise(loss_results(cells));
  const Difference& mqa = *rows[2].against_reference;
  EXPECT_EQ(mqa.test, "paired by seed, 3 seeds; with 95% all of 2 intervals hold (Bonferroni)");
  EXPECT_LT(mqa.interval()->low, mqa.over_seeds->low);
  EXPECT_GT(mqa.interval()->high, mqa.over_seeds->high);
  EXPECT_FALSE(rows[1].against_reference->interval());
}

TEST(SummariseTest, AccuracyIsComparedAsItIs) {
  const std::vector<VariantRow> rows =
      summarise(accuracy_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 4.0)}));  // 0.8 and 0.6
  EXPECT_NEAR(rows[1].against_reference->mean, -0.2, 1e-12);
  EXPECT_NEAR(*rows[1].prr.value, 75, 1e-9);
  EXPECT_NEAR(*rows[0].peop.value, (0.8 / 0.6 - 1) / kGrowth, 1e-12);
  EXPECT_TRUE(rows[0].best.scores.empty());
}

TEST(SummariseTest, TheSettingBestOnValidationIsTheRow) {
  // Setting a has two seeds, worse. b has two seeds, better on validation and worse on test. c is the best, but has one
  // seed.
  Results results =
      loss_results({loss_cell("mha", 0, 2.2, "a"), loss_cell("mha", 1, 2.2, "a"), loss_cell("mha", 0, 2.3, "b"),
                    loss_cell("mha", 1, 2.3, "b"), loss_cell("mha", 0, 1.0, "c"), loss_cell("sha", 0, 2.5, "a")});
  for (Cell& cell : results.cells) {
    if (cell.key.setting == "b") cell.validation_loss = 2.0;
  }
  add_failed(&results, {"mha", "c", 1}, "killed");
  const std::vector<VariantRow> rows = summarise(results);
  EXPECT_EQ(rows[0].best.setting, "b");
  EXPECT_EQ(rows[0].best.test_loss.mean, 2.3);
  ASSERT_EQ(rows[0].settings.size(), 3u);
  EXPECT_EQ(rows[0].settings[2].setting, "c");
  EXPECT_EQ(rows[0].settings[2].planned, 2);
  EXPECT_NEAR(rows[1].against_reference->mean, 0.2, 1e-12);  // against b, across settings
}

TEST(SummariseTest, SaysWhatIsMissing) {
  Results results = loss_results({loss_cell("mqa", 0, 2.0)});
  results.planned.push_back({"mha", "", 0});
  add_failed(&results, {"sha", "", 0}, "out of memory");
  const std::vector<VariantRow> rows = summarise(results);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_FALSE(rows[0].against_reference);
  EXPECT_EQ(rows[0].why_no_difference, "needs a finished mha");
  EXPECT_EQ(rows[0].prr.reason_undefined, "needs mha among the finished variants");
  EXPECT_EQ(rows[0].peop.reason_undefined, "needs sha among the finished variants");
  EXPECT_FALSE(rows[0].attention_memory_saved_percent);
  EXPECT_FALSE(rows[1].finished());
  EXPECT_EQ(rows[1].best.planned, 1);
  EXPECT_EQ(rows[2].failed[0].reason, "out of memory");
  EXPECT_EQ(rows[1].best.quality.count, 0);
}

TEST(SummariseTest, BlocksThatDoNotMatchGiveNoInterval) {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)});
  results.cells[1].blocks.pop_back();
  const VariantRow sha = summarise(results)[1];
  EXPECT_FALSE(sha.against_reference->over_blocks);
}

TEST(SummariseTest, BlocksWeighAsManyTargetsAsTheyHold) {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.0)});
  results.cells[1].blocks.back() += 1;  // sha is worse in the last block alone
  const auto width = [&results] {
    const Interval interval = *summarise(results)[1].against_reference->over_blocks;
    return interval.high - interval.low;
  };
  const double equal = width();
  EXPECT_GT(equal, 0.3);
  for (Cell& cell : results.cells) cell.block_targets = {38, 38, 38, 1};
  EXPECT_LT(width(), 0.1 * equal);
}

TEST(SummariseTest, ABenchmarkHasARowForEachTask) {
  Results results =
      tuned_results({tuned_cell("mha", 0, 40, 60), tuned_cell("mha", 1, 44, 60), tuned_cell("sha", 0, 30, 64)});
  results.cells[1].tasks[1].metrics[0].value = std::nan("");
  results.planned.push_back({"mqa", "", 0});
  const std::vector<VariantRow> rows = summarise(results);
  ASSERT_EQ(rows[0].tasks.size(), 2u);
  EXPECT_EQ(rows[0].tasks[0].task, "glue/cola");
  EXPECT_DOUBLE_EQ(rows[0].tasks[0].score.mean, 42);
  EXPECT_EQ(rows[0].tasks[0].score.count, 2);
  ASSERT_EQ(rows[0].tasks[0].metrics.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].tasks[0].metrics[0].summary.mean, 0.42);
  EXPECT_TRUE(rows[0].tasks[1].metrics.empty()) << "not a number with one of the seeds";
  EXPECT_EQ(rows[2].tasks[1].score.count, 0) << "no seed is finished";
  // On a scale to 100 a score of half a per cent is near 0, and no ratio is taken to it.
  EXPECT_NEAR(*rows[1].prr.value, 100 * 47.0 / 50, 1e-12) << "the one seed that both have";
  const Results low = tuned_results({tuned_cell("mha", 0, 0.5, 0.5), tuned_cell("sha", 0, 30, 64)});
  EXPECT_THAT(summarise(low)[1].prr.reason_undefined, HasSubstr("near or below 0 on a scale to 100"));
}

}  // namespace
}  // namespace headshare
