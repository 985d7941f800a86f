#include "headshare/report/statistics/decision.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/statistics/headline.h"

namespace headshare {
namespace {

// Losses of mqa and sha minus mha's scatter by +-`scatter` around those given.
Results three_seeds(double mqa, double sha, double scatter) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const double noise = scatter * static_cast<double>(seed - 1);
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("mqa", seed, 2.0 + mqa + noise));
    cells.push_back(loss_cell("sha", seed, 2.0 + sha - noise));
  }
  return loss_results(cells);
}

struct Names {
  std::vector<std::string> kept, lost, undecided;
};

Names decided(const Results& results) {
  const std::vector<VariantRow> rows = summarise(results);
  const Decision decision = decide(results, rows, *reference_row(results, rows));
  return {.kept = names_of(decision.kept), .lost = names_of(decision.lost), .undecided = names_of(decision.undecided)};
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DecisionTest, AsksWhereTheWholeIntervalLies) {
  const Names clear = decided(three_seeds(0.005, 0.2, 0.005));
  EXPECT_THAT(clear.kept, ElementsAre("mqa"));
  EXPECT_THAT(clear.lost, ElementsAre("sha"));
  EXPECT_THAT(clear.undecided, IsEmpty());
  const Names noisy = decided(three_seeds(0.005, 0.2, 0.01));
  EXPECT_THAT(noisy.kept, IsEmpty());
  EXPECT_THAT(noisy.undecided, ElementsAre("mqa"));
}

TEST(DecisionTest, TakesTheMarginThatWasAskedFor) {
  Results results = three_seeds(0.005, 0.2, 0.005);
  results.options["until-decided"] = 0;  // not asked
  EXPECT_EQ(margin_share(results), kMargin);
  results.options["until-decided"] = 0.3;  // a loss of 0.26
  EXPECT_THAT(decided(results).kept, ElementsAre("mqa", "sha"));
  EXPECT_THAT(headline(results, summarise(results)).finding, testing::HasSubstr("loses less than 30% in perplexity"));
}

// Every further look is a chance to err: it costs confidence, so that intervals are wider.
TEST(DecisionTest, LooksCostConfidence) {
  EXPECT_DOUBLE_EQ(judging_confidence(0), 0.95);
  EXPECT_DOUBLE_EQ(judging_confidence(1), 0.975);
  EXPECT_DOUBLE_EQ(judging_confidence(3), 1 - 0.05 / 8);
  Results results = three_seeds(0.005, 0.2, 0.005);
  const auto half = [&] {
    const std::vector<VariantRow> rows = summarise(results);
    return half_width(rows[1]);  // mqa
  };
  const double fixed = half();
  results.looks = {3};
  const double first_look = half();
  EXPECT_GT(first_look, fixed);
  results.looks = {2, 3};
  EXPECT_GT(half(), first_look);
  EXPECT_THAT(summarise(results)[1].against_reference->test, testing::HasSubstr("at this look and the 1 before it"));
}

TEST(DecisionTest, SaysHowManySeedsWouldDo) {
  const auto needed = [](const Results& results, int64_t most) {
    const std::vector<VariantRow> rows = summarise(results);
    const VariantRow& reference = *reference_row(results, rows);
    return seeds_to_decide(results, reference, decide(results, rows, reference).undecided, most);
  };
  EXPECT_EQ(needed(three_seeds(0.005, 0.2, 0.01), 50), 5);
  EXPECT_EQ(needed(three_seeds(0.005, 0.2, 0.01), 4), std::nullopt);
  EXPECT_EQ(needed(three_seeds(0.005, 0.2, 0.005), 50), 0);  // decided
}

}  // namespace
}  // namespace headshare
