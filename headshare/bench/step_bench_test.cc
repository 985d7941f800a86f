#include "headshare/bench/step_bench.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StepBench : public testing::Test {
 protected:
  StepBench() { at::set_num_threads(1); }
};

StepCase small_step(const std::string& scheme) {
  return {.scheme = scheme, .layers = 2, .heads = 4, .head_width = 8, .vocabulary = 50, .batch = 2, .length = 24};
}

StepBenchOptions quick_steps() { return {.turns = {.least_rounds = 2, .most_rounds = 2}, .small_roofs = true}; }

TEST_F(StepBench, StepsAreCheckedTimedAndRelatedToAProduct) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    std::vector<StepCase> group;
    for (const std::string scheme : {"mha", "mqa", "mhe_add", "mhe_mul", "mla"}) {
      group.push_back(small_step(scheme));
      group.back().precision = precision;
    }
    for (const StepRow& row : bench_steps(group, quick_steps())) {
      SCOPED_TRACE(case_name(row.of));
      EXPECT_EQ(row.refused, "");
      EXPECT_EQ(row.timing.repetitions, 2);
      EXPECT_NEAR(row.tokens_per_second * row.timing.median_ms, 1000 * 2 * 24, 1e-3);
      EXPECT_NEAR(row.rate.per_second * row.timing.median_ms, 1000 * operations_of(row.of), 1);
      EXPECT_EQ(row.rate.kind, RoofKind::kProduct);
      EXPECT_GT(row.rate.roof, 0);
    }
  }
}

TEST_F(StepBench, AWrongLossOrGradientIsNamed) {
  const Lesson exact{.loss = 4, .gradient_norm = 2};
  EXPECT_EQ(why_wrong({.loss = 4.001, .gradient_norm = 1.999}, exact, Precision::kFp32), "");
  EXPECT_THAT(why_wrong({.loss = 4.01, .gradient_norm = 2}, exact, Precision::kFp32), HasSubstr("the loss is 4.01"));
  EXPECT_THAT(why_wrong({.loss = 4, .gradient_norm = 2.02}, exact, Precision::kFp32),
              HasSubstr("the gradient is 2.02 long, and in double precision 2"));
  EXPECT_EQ(why_wrong({.loss = 4.01, .gradient_norm = 2.02}, exact, Precision::kBf16), "");
  EXPECT_NE(why_wrong({.loss = std::nan(""), .gradient_norm = 2}, exact, Precision::kBf16), "");
}

TEST_F(StepBench, OperationsAreSixForEachWeightAndTokenAndSevenProductsOfAHead) {
  const double E = 32, tokens = 2 * 24, pairs = 2.0 * 4 * 24 * 25 / 2;  // B, H, visible pairs
  const double layer = 4 * E * E + 2 * E * 4 * E;
  EXPECT_EQ(operations_of(small_step("mha")), 6 * tokens * (2 * layer + 50 * E) + 2 * (2 * pairs * 7 * 8));
  const double shared = layer - 2 * E * E + 2 * E * 8;  // one key and one value head
  EXPECT_EQ(operations_of(small_step("mqa")), 6 * tokens * (2 * shared + 50 * E) + 2 * (2 * pairs * 7 * 8));
}

TEST_F(StepBench, TheGridGivesModels) {
  const AttentionGrid grid{
      .schemes = {"mha", "mqa"}, .precisions = {"fp32", "bf16"}, .heads = {4}, .lengths = {64}, .tokens = 256};
  std::vector<std::string> names;
  for (const StepCase& one : step_cases_of(grid, {.layers = 3, .vocabulary = 100})) names.push_back(case_name(one));
  EXPECT_THAT(names, ElementsAre("mha step L3 H4 T64 D64 V100 B4", "mqa step L3 H4 T64 D64 V100 B4",
                                 "mha step L3 H4 T64 D64 V100 B4 bf16", "mqa step L3 H4 T64 D64 V100 B4 bf16"));
  EXPECT_THROW(step_cases_of({.schemes = {"mhaa"}}, {}), Error);
}

}  // namespace
}  // namespace headshare
