#include "headshare/compare/until_decided.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"

namespace headshare {
namespace {

// Makes results in which mqa's loss is higher than mha's by 0.005, scattered by +-`scatter`; the margin is 2% unless
// another is asked for.
Results with_scatter(double scatter, double margin = 0.02) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("mqa", seed, 2.005 + scatter * static_cast<double>(seed - 1)));
  }
  Results results = loss_results(cells);
  results.looks = {3};
  results.options["until-decided"] = margin;
  return results;
}

ComparisonOptions asking(double margin, int64_t most = 20) {
  ComparisonOptions options;
  options.seeds = 3;
  options.until_decided = margin;
  options.max_seeds = most;
  return options;
}

TEST(UntilDecidedTest, StopsWhereItIsDecidedOrNotAsked) {
  EXPECT_EQ(seeds_to_go_on_with(asking(0), with_scatter(0.01)), std::nullopt);
  EXPECT_EQ(seeds_to_go_on_with(asking(0.02), with_scatter(0.0001)), std::nullopt);
  EXPECT_EQ(seeds_to_go_on_with(asking(0.02, 3), with_scatter(0.01)), std::nullopt);  // more are not allowed
}

TEST(UntilDecidedTest, GoesOnToWhatWouldDecide) {
  const auto next = seeds_to_go_on_with(asking(0.02), with_scatter(0.01));
  ASSERT_TRUE(next);
  EXPECT_GT(*next, 3);
  EXPECT_LT(*next, 20);
  EXPECT_EQ(seeds_to_go_on_with(asking(0.02, 4), with_scatter(0.01)), 4);
  EXPECT_EQ(seeds_to_go_on_with(asking(0.00501), with_scatter(0.01, 0.00501)), 20);  // at the margin: the most allowed
}

TEST(UntilDecidedTest, AddsNothingToFailures) {
  Results results = with_scatter(0.01);
  results.failed.push_back({.key = {"sha", "", 0}, .reason = "no luck"});
  EXPECT_EQ(seeds_to_go_on_with(asking(0.02), results), std::nullopt);
}

TEST(UntilDecidedTest, ForecastsAllSeedsThatMayCome) {
  const Forecast first{.data = "a text", .models = 6, .seconds = 30};
  EXPECT_EQ(with_added_seeds(first, asking(0)).models, 6u);
  EXPECT_EQ(with_added_seeds(first, asking(0.02, 12)).models, 24u);
  EXPECT_EQ(with_added_seeds(first, asking(0.02, 12)).seconds, 120);
}

}  // namespace
}  // namespace headshare
