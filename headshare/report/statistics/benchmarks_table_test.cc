#include "headshare/report/statistics/benchmarks_table.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"

namespace headshare {
namespace {

// Returns a benchmark with these mean scores, one seed each.
Results benchmark(const std::string& name, const std::vector<std::pair<std::string, double>>& scores) {
  std::vector<Cell> cells;
  for (const auto& [scheme, score] : scores) {
    cells.push_back(loss_cell(scheme, /*seed=*/0, /*loss=*/1));
    cells.back().quality = score;
    cells.back().tasks = {{.task = name, .score = score}};
  }
  Results results = loss_results(std::move(cells));
  results.subject.name = name;
  results.subject.measure = "score";
  results.subject.direction = Direction::kHigherIsBetter;
  results.subject.full_scale = 100;
  results.subject.tasks = {name};
  return results;
}

TEST(BenchmarksTable, StandsSideBySide) {
  const std::vector<Results> all = {loss_results({loss_cell("mha", 0, 2)}),
                                    benchmark("glue", {{"mha", 80}, {"sha", 64}, {"mqa", 72}}),
                                    benchmark("squad-v2.0", {{"mha", 50}, {"mhe_mul", 55}})};
  const BenchmarksTable table(all);
  ASSERT_TRUE(table.is_one());
  ASSERT_EQ(table.benchmarks().size(), 2U);
  ASSERT_EQ(table.rows().size(), 4U);
  const BenchmarksRow& mqa = table.rows()[2];
  EXPECT_EQ(mqa.variant, "mqa");
  EXPECT_EQ(mqa.attention_parameters, 1280);
  // PRR is 100 * 72 / 80; PEoP is (72 / 64 - 1) / (1280 / 768 - 1).
  EXPECT_THAT(benchmark_texts(mqa.on[0]), testing::ElementsAre("72.0", "90.0", "0.19"));
  EXPECT_EQ(mqa.on[1], nullptr);
  EXPECT_THAT(benchmark_texts(mqa.on[1]), testing::ElementsAre("-", "-", "-"));
  EXPECT_THAT(benchmark_texts(table.rows()[3].on[1]), testing::ElementsAre("55.0", "110.0", "-"));  // no sha there
  EXPECT_TRUE(table.is_best(0, 0));
  EXPECT_FALSE(table.is_best(0, 1));
  EXPECT_TRUE(table.is_best(3, 1));
  EXPECT_FALSE(table.is_best(3, 0));
}

TEST(BenchmarksTable, NeedsTwoBenchmarksOfTheSameEncoders) {
  EXPECT_FALSE(BenchmarksTable({}).is_one());
  const std::vector<Results> one = {benchmark("glue", {{"mha", 80}}), loss_results({loss_cell("mha", 0, 2)})};
  EXPECT_FALSE(BenchmarksTable(one).is_one());
  std::vector<Results> others = {benchmark("glue", {{"mha", 80}}), benchmark("superglue", {{"mha", 60}})};
  EXPECT_TRUE(BenchmarksTable(others).is_one());
  others[1].cells[0].size.attention_parameters += 1;
  EXPECT_FALSE(BenchmarksTable(others).is_one());
}

}  // namespace
}  // namespace headshare
