#include "headshare/metrics/retention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// The cells are the MHE paper's encoder tables (docs/mathematics.md#prr-and-peop). A PEoP of 0 stands for the dash of
// SHA.
struct Cell {
  double accuracy, prr, peop;
};
struct Row {
  const char* method;
  std::array<Cell, 4> cells;  // GLUE, SuperGLUE, SQuAD 1.1, SQuAD 2.0
  int64_t parameters;         // 12 sub-layers, model width 768, 12 heads of 64, no biases
};

constexpr int64_t kLayers = 12, kModel = 768, kHeads = 12, kHead = 64;
constexpr int64_t kSha = kLayers * (3 * kModel * kHead + kModel * kModel);
constexpr int64_t kMhe = kSha + kLayers * 3 * kHeads * kHead;

const std::vector<Row> kTable = {
    {"SHA", {{{79.2, 96.7, 0}, {67.1, 95.1, 0}, {82.5, 93.1, 0}, {67.6, 87.8, 0}}}, kSha},
    {"MHA",
     {{{81.9, 100, 0.02}, {70.5, 100, 0.02}, {88.6, 100, 0.03}, {77.0, 100, 0.06}}},
     kLayers * 4 * kModel* kModel},
    {"EL-ATT",
     {{{80.3, 98.0, 0.02}, {69.5, 98.5, 0.06}, {86.5, 97.6, 0.08}, {72.2, 93.8, 0.11}}},
     kLayers * 2 * kModel* kModel},
    {"MQA",
     {{{81.3, 99.2, 0.04}, {69.3, 98.2, 0.04}, {86.7, 97.9, 0.07}, {74.8, 97.1, 0.15}}},
     kLayers*(2 * kModel * kModel + 2 * kModel * kHead)},
    {"SKV",
     {{{81.4, 99.4, 0.02}, {69.9, 99.1, 0.03}, {88.1, 99.4, 0.05}, {75.9, 98.6, 0.09}}},
     kLayers * 3 * kModel* kModel},
    {"MHE-ADD", {{{80.4, 98.2, 4.92}, {69.1, 97.9, 9.44}, {83.7, 94.5, 4.65}, {71.8, 93.2, 19.88}}}, kMhe},
    {"MHE-MUL", {{{80.6, 98.3, 5.53}, {69.6, 98.7, 12.07}, {85.9, 97.0, 13.19}, {72.3, 93.9, 22.25}}}, kMhe},
};

PrrQuestion prr_question(const Row& row, size_t task) {
  return {.quality = row.cells[task].accuracy, .quality_mha = kTable[1].cells[task].accuracy, .full_scale = 100};
}

PeopQuestion peop_question(const Row& row, size_t task) {
  return {.quality = row.cells[task].accuracy,
          .quality_sha = kTable[0].cells[task].accuracy,
          .parameters = row.parameters,
          .parameters_sha = kSha,
          .full_scale = 100,
          .is_sha = row.parameters == kSha};
}

// Returns the range of all values that `ratio` can have when both qualities were rounded to within half_unit of what
// they are (0.05 for one printed decimal): it is monotone in each, so that the extremes are at the corners. Returns
// nothing where it is undefined.
template <class Question>
std::optional<Interval> rounding_interval(Retention (*ratio)(const Question&), double Question::*reference,
                                          const Question& question, double half_unit) {
  std::vector<double> corners;
  for (const double quality : {question.quality - half_unit, question.quality + half_unit}) {
    for (const double other : {question.*reference - half_unit, question.*reference + half_unit}) {
      Question corner = question;
      corner.quality = quality;
      corner.*reference = other;
      const Retention found = ratio(corner);
      if (!found.value) return std::nullopt;
      corners.push_back(*found.value);
    }
  }
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return Interval{*low, *high};
}

std::optional<Interval> prr_rounding_interval(const PrrQuestion& question, double half_unit) {
  return rounding_interval(&prr, &PrrQuestion::quality_mha, question, half_unit);
}

std::optional<Interval> peop_rounding_interval(const PeopQuestion& question, double half_unit) {
  return rounding_interval(&peop, &PeopQuestion::quality_sha, question, half_unit);
}

// The true ratio lies in `possible`; a correct print of it is off by no more than half a unit.
void expect_printed(double printed, const std::optional<Interval>& possible, double half_unit) {
  ASSERT_TRUE(possible.has_value());
  EXPECT_GE(printed, possible->low - half_unit);
  EXPECT_LE(printed, possible->high + half_unit);
}

TEST(RetentionTest, ThePapersTwentyEightPrrCells) {
  int cells = 0;
  for (const Row& row : kTable) {
    for (size_t task = 0; task < 4; ++task, ++cells) {
      SCOPED_TRACE(testing::Message() << row.method << ", task " << task);
      expect_printed(row.cells[task].prr, prr_rounding_interval(prr_question(row, task), 0.05), 0.05);
      EXPECT_NEAR(*prr(prr_question(row, task)).value, row.cells[task].prr, 0.12);
    }
  }
  EXPECT_EQ(cells, 28);
}

TEST(RetentionTest, ThePapersTwentyFourPeopCells) {
  int cells = 0;
  for (size_t i = 1; i < kTable.size(); ++i) {
    for (size_t task = 0; task < 4; ++task, ++cells) {
      SCOPED_TRACE(testing::Message() << kTable[i].method << ", task " << task);
      expect_printed(kTable[i].cells[task].peop, peop_rounding_interval(peop_question(kTable[i], task), 0.05), 0.005);
    }
  }
  EXPECT_EQ(cells, 24);
}

TEST(RetentionTest, PeopNeedsExactCounts) {
  EXPECT_EQ(kSha, 8847360);
  EXPECT_EQ(kMhe, 8875008);
  PeopQuestion question = peop_question(kTable[5], 3);
  EXPECT_NEAR(*peop(question).value, 19.88, 0.005);
  question.parameters = 8880000;
  question.parameters_sha = 8850000;
  EXPECT_NEAR(*peop(question).value, 18.33, 0.005);
}

// The rows are the translation table: BLEU of MHA and MHE-MUL, PRR printed.
TEST(RetentionTest, ThePapersTranslationColumn) {
  const double rows[7][3] = {{24.8, 23.6, 95.0}, {25.1, 22.9, 91.5}, {24.7, 23.6, 95.3}, {23.9, 22.4, 93.6},
                             {25.3, 24.3, 96.0}, {25.7, 24.2, 94.2}, {26.5, 24.8, 93.6}};
  for (const auto& [mha, mhe, printed] : rows) {
    SCOPED_TRACE(printed);
    const PrrQuestion question{.quality = mhe, .quality_mha = mha, .full_scale = 100};
    expect_printed(printed, prr_rounding_interval(question, 0.05), 0.05);
  }
}

TEST(RetentionTest, PerplexityCountsDownwards) {
  const Retention kept = prr({.quality = 22, .quality_mha = 20, .direction = Direction::kLowerIsBetter});
  EXPECT_NEAR(*kept.value, 90, 1e-12);
  EXPECT_THAT(kept.rule, testing::HasSubstr("2 - M / M_MHA"));
  const Retention bought = peop({.quality = 18,
                                 .quality_sha = 20,
                                 .parameters = 150,
                                 .parameters_sha = 100,
                                 .direction = Direction::kLowerIsBetter});
  EXPECT_NEAR(*bought.value, 0.2, 1e-12);
  EXPECT_THAT(bought.rule, testing::HasSubstr("1 - M / M_SHA"));
}

TEST(RetentionTest, UndefinedRatiosGiveTheirReason) {
  PeopQuestion question{.quality = 80, .quality_sha = 79, .parameters = 100, .parameters_sha = 100, .full_scale = 100};
  EXPECT_THAT(peop(question).reason_undefined, testing::HasSubstr("as many attention parameters as SHA: 100"));
  question.is_sha = true;
  EXPECT_THAT(peop(question).reason_undefined, testing::HasSubstr("the reference itself"));
  question.is_sha = false;
  question.parameters = 99;
  EXPECT_THAT(peop(question).reason_undefined, testing::HasSubstr("fewer attention parameters than SHA: 99 < 100"));
  question.parameters = 200;
  question.quality_sha = -0.5;
  EXPECT_THAT(peop(question).reason_undefined, testing::HasSubstr("near or below 0"));
  EXPECT_FALSE(peop(question).value.has_value());
  question.parameters = 0;
  EXPECT_THROW(peop(question), Error);

  EXPECT_THAT(prr({.quality = 0.5, .quality_mha = 0.009}).reason_undefined, testing::HasSubstr("near or below 0"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(prr({.quality = nan, .quality_mha = 0.9}).reason_undefined, testing::HasSubstr("diverged"));
}

TEST(RetentionTest, IntervalsOverSeeds) {
  const std::vector<double> variant = {80.1, 80.9, 80.6};
  const std::vector<double> reference = {79.0, 79.5, 79.1};
  const std::optional<Interval> ratio = ratio_interval(variant, reference);
  const Retention kept = prr_over_seeds({.full_scale = 100}, variant, reference);
  EXPECT_NEAR(*kept.value, 100 * (80.1 + 80.9 + 80.6) / (79.0 + 79.5 + 79.1), 1e-10);
  EXPECT_NEAR(kept.interval->low, 100 * ratio->low, 1e-10);
  EXPECT_NEAR(kept.interval->high, 100 * ratio->high, 1e-10);
  EXPECT_EQ(kept.interval_rule, "95% Fieller interval over 3 paired seeds");

  const PeopQuestion down{.parameters = 125, .parameters_sha = 100, .direction = Direction::kLowerIsBetter};
  const Retention bought = peop_over_seeds(down, variant, reference);
  EXPECT_NEAR(bought.interval->low, (1 - ratio->high) / 0.25, 1e-10);
  EXPECT_NEAR(bought.interval->high, (1 - ratio->low) / 0.25, 1e-10);
  EXPECT_LT(bought.interval->low, *bought.value);
  EXPECT_GT(bought.interval->high, *bought.value);
}

TEST(RetentionTest, SeedsThatAllowNoIntervalSaySo) {
  const std::vector<double> one = {80.0};
  const Retention single = prr_over_seeds({.full_scale = 100}, one, one);
  EXPECT_EQ(*single.value, 100);
  EXPECT_FALSE(single.interval.has_value());
  EXPECT_THAT(single.interval_rule, testing::HasSubstr("one seed"));

  const std::vector<double> wild = {0.9, 0.01, 0.02};
  EXPECT_THAT(prr_over_seeds({}, wild, wild).interval_rule, testing::HasSubstr("not distinguishable from 0"));

  const std::vector<double> diverged = {0.9, std::numeric_limits<double>::infinity(), 0.8};
  EXPECT_THAT(prr_over_seeds({}, diverged, wild).reason_undefined, testing::HasSubstr("diverged"));
}

TEST(RetentionTest, MultiHeadAttentionKeepsExactlyAllOfItself) {
  const std::vector<double> seeds = {88.1, 88.6, 87.9};
  const Retention itself = prr_over_seeds({.full_scale = 100}, seeds, seeds);
  EXPECT_EQ(*itself.value, 100);
  EXPECT_EQ(itself.interval->low, 100);
  EXPECT_EQ(itself.interval->high, 100);
}

}  // namespace
}  // namespace headshare
