#include "headshare/tasks/finetune/coverage.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

Question question(std::vector<int32_t> words, int32_t label) {
  return {.rows = {EncodedRow{.ids = {}, .text_words = std::move(words)}}, .label = label};
}

const QuestionKind kClasses{.name = "classify", .labels = {"a", "b"}, .metrics = {Metric::kAccuracy}};

TEST(CoverageTest, CountsWordsThatTrainingNeverHas) {
  const QuestionSet train{.questions = {question({1, 2, 2}, 0), question({3}, 1)}, .labelled = true};
  const QuestionSet part{
      .questions = {question({1, 3}, 0), question({1, 7, 7}, 0), question({8}, 1), question({9, 2}, 1)},
      .labelled = true};
  const auto coverage = coverage_of(train, kClasses, part, {1, 0, 1, 0});
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->types, 6);         // 1 2 3 7 8 9
  EXPECT_EQ(coverage->unseen_types, 3);  // 7 8 9
  EXPECT_EQ(coverage->words, 8);
  EXPECT_EQ(coverage->unseen_words, 4);
  EXPECT_EQ(coverage->rows, 4);
  EXPECT_EQ(coverage->unseen_rows, 3);
  EXPECT_DOUBLE_EQ(coverage->unseen_score.value(), 2.0 / 3);  // the first row is wrong, and does not count
}

TEST(CoverageTest, OneRowHasNoScore) {
  const QuestionSet train{.questions = {question({1}, 0)}, .labelled = true};
  const QuestionSet part{.questions = {question({1}, 0), question({2}, 1)}, .labelled = true};
  const auto coverage = coverage_of(train, kClasses, part, {0, 1});
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->unseen_rows, 1);
  EXPECT_FALSE(coverage->unseen_score);
}

TEST(CoverageTest, CountsRowsThatWereCut) {
  const QuestionSet train{.questions = {question({1}, 0)}, .labelled = true};
  QuestionSet part{.questions = {question({1}, 0), question({2}, 1), question({1}, 1)}, .labelled = true};
  EXPECT_EQ(coverage_of(train, kClasses, part, {0, 1, 1})->cut_rows, 0);
  part.questions[0].rows[0].cut = true;
  part.questions[2].rows.push_back({.ids = {}, .cut = true, .text_words = {1}});  // one of its rows is enough
  EXPECT_EQ(coverage_of(train, kClasses, part, {0, 1, 1})->cut_rows, 2);
}

TEST(CoverageTest, RowsWithoutWordsHaveNone) {
  const QuestionSet train{.questions = {question({}, 0)}, .labelled = true};
  EXPECT_FALSE(coverage_of(train, kClasses, train, {0}));
}

}  // namespace
}  // namespace headshare
