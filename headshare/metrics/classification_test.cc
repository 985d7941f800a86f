#include "headshare/metrics/classification.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using Classes = std::vector<int32_t>;
using testing::AllOf;
using testing::HasSubstr;

TEST(ClassificationTest, ByHand) {
  const Classes gold = {1, 1, 1, 0, 0, 0};
  const Classes predicted = {1, 1, 0, 1, 0, 0};  // TP 2, FN 1, FP 1, TN 2
  EXPECT_DOUBLE_EQ(accuracy({gold, predicted}).value, 4.0 / 6);
  EXPECT_DOUBLE_EQ(f1({gold, predicted}).value, 4.0 / 6);
  EXPECT_DOUBLE_EQ(f1({gold, predicted}, 0).value, 4.0 / 6);
  EXPECT_DOUBLE_EQ(matthews({gold, predicted}).value, (2.0 * 2 - 1.0 * 1) / 9);
  EXPECT_EQ(f1({gold, predicted}).signature, "f1|positive:1|examples:6");
}

TEST(ClassificationTest, ThreeClasses) {
  const Classes gold = {0, 1, 2, 2};
  const Classes predicted = {0, 2, 2, 2};
  EXPECT_DOUBLE_EQ(macro_f1({gold, predicted}).value, (1 + 0 + 0.8) / 3);
  // R_K is a ratio of covariances; of 4 examples 3 are right.
  EXPECT_DOUBLE_EQ(matthews({gold, predicted}).value, (3 * 4 - 7) / std::sqrt((16.0 - 6) * (16 - 10)));
}

TEST(ClassificationTest, ClassesThatDoNotOccurDoNotCount) {
  const Classes gold = {0, 5, 5};
  EXPECT_DOUBLE_EQ(macro_f1({gold, gold}).value, 1);
  EXPECT_EQ(macro_f1({gold, gold}).signature, "macro_f1|classes:2|examples:3");
}

TEST(ClassificationTest, OneClassOnlyIsSaid) {
  const Classes gold = {0, 1, 1};
  const Classes ones = {1, 1, 1};
  const Classes zeros = {0, 0, 0};
  EXPECT_EQ(matthews({gold, ones}).value, 0);
  EXPECT_THAT(matthews({gold, ones}).note, HasSubstr("every prediction is of one class"));
  EXPECT_THAT(matthews({ones, gold}).note, HasSubstr("every gold label is of one class"));
  EXPECT_EQ(matthews({ones, ones}).value, 0);
  EXPECT_EQ(f1({zeros, zeros}).value, 0);
  EXPECT_THAT(f1({zeros, zeros}).note, HasSubstr("no example has or got the class 1"));
  EXPECT_EQ(f1({gold, zeros}).value, 0);
  EXPECT_EQ(f1({gold, zeros}).note, "");
}

TEST(ClassificationTest, ManyExamplesDoNotOverflow) {
  Classes gold(400000, 0);
  std::fill(gold.begin(), gold.begin() + 200000, 1);
  EXPECT_DOUBLE_EQ(matthews({gold, gold}).value, 1);
}

TEST(ClassificationTest, AllOfAGroupMustBeRight) {
  const Classes gold = {1, 0, 1, 0, 1};
  const Classes predicted = {1, 0, 1, 1, 1};
  const std::vector<ExampleGroup> groups = {{1, 7}, {1, 7}, {1, 3}, {1, 3}, {1, 7}};
  const Score score = grouped_exact_match({gold, predicted}, groups);
  EXPECT_DOUBLE_EQ(score.value, 0.5);
  EXPECT_EQ(score.signature, "exact_match|groups:2|examples:5");
  const std::vector<ExampleGroup> elsewhere = {{1, 7}, {1, 7}, {1, 3}, {1, 3}, {2, 7}};  // numbered anew on passage 2
  EXPECT_EQ(grouped_exact_match({gold, predicted}, elsewhere).signature, "exact_match|groups:3|examples:5");
  EXPECT_THAT(error_message([&] {
                grouped_exact_match({gold, predicted}, std::vector<ExampleGroup>{{1, 1}});
              }),
              HasSubstr("1 groups for 5 examples"));
}

TEST(ClassificationTest, WhatCannotBePairedIsRefused) {
  const Classes two = {0, 1};
  const Classes three = {0, 1, 1};
  const Classes unlabelled = {0, -1};
  EXPECT_THAT(error_message([&] { accuracy({three, two}); }), HasSubstr("2 predictions for 3 examples"));
  EXPECT_THAT(error_message([] { matthews({}); }), HasSubstr("no examples"));
  EXPECT_THAT(error_message([&] { f1({unlabelled, two}); }), AllOf(HasSubstr("example 1"), HasSubstr("-1")));
}

}  // namespace
}  // namespace headshare
