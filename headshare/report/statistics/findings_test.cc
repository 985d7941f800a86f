#include "headshare/report/statistics/findings.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/statistics/decision.h"

namespace headshare {
namespace {

using ::testing::ElementsAre;

// There are three seeds; mqa and sha differ from mha by that much, their differences scatter by +-0.005.
Results three_seeds(double mqa, double sha) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const double noise = 0.005 * static_cast<double>(seed - 1);
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("mqa", seed, 2.0 + mqa + noise));
    cells.push_back(loss_cell("sha", seed, 2.0 + sha - noise));
  }
  return loss_results(cells);
}

std::string compared(const Results& results) { return comparison_finding(results, summarise(results)); }
std::string differences(const Results& results) { return difference_finding(results, summarise(results)); }

TEST(FindingsTest, SayWhatIsKeptLostAndUndecided) {
  EXPECT_EQ(compared(three_seeds(0.005, 0.05)), "mqa loses less than 2% against mha; sha loses about 5%");
  EXPECT_EQ(compared(three_seeds(0.05, 0.1)), "mqa and sha lose about 5% to 11% against mha");
  EXPECT_EQ(compared(three_seeds(-0.1, 0.012)),
            "mqa is significantly better than mha; undecided: three seeds cannot tell sha apart from mha");
  EXPECT_EQ(compared(three_seeds(0.012, 0.1)),
            "sha loses about 11% against mha; undecided: three seeds cannot tell mqa apart from mha");
  EXPECT_EQ(compared(three_seeds(0.012, 0.012)), "Undecided: three seeds cannot tell mqa and sha apart from mha");
}

// This holds whatever the numbers are.
TEST(FindingsTest, OneSeedAndTwoClaimNothing) {
  for (const char* few : {"One seed", "Two seeds"}) {
    Results results = three_seeds(0.1, 0.2);
    const int64_t most = few[0] == 'O' ? 0 : 1;
    std::erase_if(results.cells, [most](const Cell& cell) { return cell.key.seed > most; });
    std::erase_if(results.planned, [most](const CellKey& key) { return key.seed > most; });
    const std::vector<VariantRow> rows = summarise(results);
    const std::string sentence = std::string(few) + " cannot separate noise from a real difference";
    EXPECT_EQ(comparison_finding(results, rows), sentence);
    EXPECT_EQ(difference_finding(results, rows), sentence);
    EXPECT_EQ(frontier_finding(results, rows, {&rows[0]}, "cache"),
              std::string("Undecided: ") + (most == 0 ? "one seed" : "two seeds") +
                  " cannot tell which schemes lie on the Pareto frontier against cache");
  }
}

TEST(FindingsTest, NameWhatIsMissing) {
  EXPECT_EQ(compared(three_seeds(0.1, 0.2)), "mqa and sha lose about 11% to 22% against mha");
  Results results = three_seeds(0.1, 0.2);
  results.references.quality = "gqa";
  EXPECT_EQ(compared(results), "gqa is missing, so no difference can be judged");
  Results nothing = loss_results({});
  nothing.planned.push_back({"mha", "", 0});
  EXPECT_EQ(compared(nothing), "No model is finished yet");
  nothing.failed.push_back({{"mha", "", 0}, "killed"});
  EXPECT_EQ(compared(nothing), "Every model failed");
}

TEST(FindingsTest, CountWhatIsTooMuchToName) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    for (const char* scheme : {"mha", "gqa", "mqa", "sha", "skv"}) cells.push_back(loss_cell(scheme, seed, 2.0));
    cells.push_back(loss_cell("mhe_mul", seed, 2.3));
  }
  const Results results = loss_results(cells);
  EXPECT_EQ(compared(results), "4 schemes lose less than 2% against mha; mhe_mul loses about 35%");
  EXPECT_EQ(differences(results), "mhe_mul is significantly worse than mha; 4 schemes are not significantly different");
}

TEST(FindingsTest, LongNamesAreShortened) {
  Results results = three_seeds(0.05, 0.1);
  for (Cell& cell : results.cells) {
    if (cell.key.variant == "mqa") cell.key.variant = std::string(40, 'm');
  }
  results.planned.clear();
  for (const Cell& cell : results.cells) results.planned.push_back(cell.key);
  EXPECT_EQ(differences(results), std::string(23, 'm') + "… and sha are significantly worse than mha");
}

TEST(FindingsTest, ADifferenceIsSignificantOrNotThere) {
  EXPECT_EQ(differences(three_seeds(0.005, 0.004)), "No scheme is significantly different from mha");
  EXPECT_EQ(differences(three_seeds(-0.1, 0.1)),
            "mqa is significantly better than mha; sha is significantly worse than mha");
}

TEST(FindingsTest, SeedsAgainstSchemes) {
  const Results results = three_seeds(0.1, 0.2);
  EXPECT_EQ(seed_finding(results, summarise(results)),
            "Test perplexity differs by up to 0.09 between seeds of one scheme and by up to 1.64 between schemes");
  const Results one = loss_results({loss_cell("mha", 0, 2.0)});
  EXPECT_EQ(seed_finding(one, summarise(one)), "Each scheme was trained with one seed");
}

std::vector<std::string> frontier(const Results& results, const std::vector<VariantRow>& rows) {
  return names_of(pareto_frontier(
      results.subject, rows, [](const VariantRow& row) { return static_cast<double>(row.size.attention_parameters); }));
}

TEST(ParetoTest, HoldsWhatNothingCheaperReaches) {
  // sha has 768 parameters, mqa 1,280, mha 2,048.
  const Results all_on = three_seeds(0.1, 0.2);
  EXPECT_THAT(frontier(all_on, summarise(all_on)), ElementsAre("sha", "mqa", "mha"));
  const Results sha_best = three_seeds(0.1, -0.2);
  EXPECT_THAT(frontier(sha_best, summarise(sha_best)), ElementsAre("sha"));
  Results same_cost = three_seeds(0.1, 0.2);
  for (Cell& cell : same_cost.cells) cell.size.attention_parameters = 5;
  EXPECT_THAT(frontier(same_cost, summarise(same_cost)), ElementsAre("mha"));
  Results accuracy = accuracy_results(three_seeds(0.1, 0.2).cells);  // higher is better
  EXPECT_THAT(frontier(accuracy, summarise(accuracy)), ElementsAre("sha", "mqa", "mha"));
}

TEST(ParetoTest, LeavesOutWhatCostsNothingKnown) {
  Results results = three_seeds(0.1, 0.05);
  for (Cell& cell : results.cells) {
    if (cell.key.variant == "sha") cell.size.cache_bytes_per_token = 0;
  }
  const auto cache = [](const VariantRow& row) { return static_cast<double>(row.size.cache_bytes_per_token); };
  const std::vector<VariantRow> rows = summarise(results);
  EXPECT_THAT(names_of(pareto_frontier(results.subject, rows, cache)), ElementsAre("mqa", "mha"));
}

// Rewritten weights, measured again, differ in the last digits.
TEST(ParetoTest, RewrittenWeightsAreAsGoodAsTheirOrigin) {
  Results results = three_seeds(0.1, 0.2);
  for (int64_t seed = 0; seed < 3; ++seed) {
    Cell cell = loss_cell("el_lossless", seed, 2.0 + 1e-7);
    cell.weights_of = "mha";
    cell.size.attention_parameters = kMhaParameters - 1;
    results.planned.push_back(cell.key);
    results.cells.push_back(cell);
  }
  EXPECT_THAT(frontier(results, summarise(results)), ElementsAre("sha", "mqa", "el_lossless"));
  const std::vector<VariantRow> rows = summarise(results);
  EXPECT_EQ(frontier_finding(results, rows, {&rows[0]}, "cache"), "Only mha lies on the Pareto frontier against cache");
  EXPECT_EQ(frontier_finding(results, rows, {&rows[0], &rows[1]}, "cache"),
            "mha and mqa lie on the Pareto frontier against cache");
}

// Means that the headline calls undecided may stand in their order by chance.
TEST(ParetoTest, NoFrontierOfUndecidedMeans) {
  const auto title = [](const Results& results) {
    const std::vector<VariantRow> rows = summarise(results);
    return frontier_finding(results, rows, {&rows[0]}, "cache");
  };
  const Results decided = three_seeds(0.005, 0.1);
  EXPECT_TRUE(means_are_decided(decided, summarise(decided)));
  EXPECT_EQ(title(decided), "Only mha lies on the Pareto frontier against cache");
  const std::string undecided =
      "Undecided: three seeds cannot tell which schemes lie on the Pareto frontier against cache";
  EXPECT_EQ(title(three_seeds(0.012, 0.1)), undecided);  // not significantly different, and may lose 2%
  EXPECT_EQ(title(three_seeds(0.025, 0.1)), undecided);  // significantly worse, and may lose less than 2%
  Results without = decided;
  without.references.quality = "gqa";
  EXPECT_EQ(title(without), "gqa is missing, so no Pareto frontier against cache can be judged");
  Results few = decided;
  std::erase_if(few.cells, [](const Cell& cell) { return cell.key.variant == "sha" && cell.key.seed > 0; });
  EXPECT_EQ(title(few), undecided);  // one seed of sha judges nothing
}

// However many seeds there are, what was not shown to differ was not shown to be equal.
TEST(FindingsTest, UndecidedSaysHowManySeeds) {
  Results results = three_seeds(0.012, 0.012);
  for (const int64_t seed : {3, 4}) {
    for (const char* scheme : {"mha", "mqa", "sha"}) {
      const double away = 0.012 + 0.06 * (static_cast<double>(seed) - 3.5);
      results.cells.push_back(loss_cell(scheme, seed, std::string(scheme) == "mha" ? 2.0 : 2.0 + away));
      results.planned.push_back(results.cells.back().key);
    }
  }
  EXPECT_EQ(compared(results), "Undecided: five seeds cannot tell mqa and sha apart from mha");
  std::erase_if(results.cells, [](const Cell& cell) { return cell.key.variant == "sha" && cell.key.seed > 3; });
  EXPECT_EQ(compared(results), "Undecided: these seeds cannot tell mqa and sha apart from mha");
}

TEST(PlanCaveatTest, SaysWhatFewSeedsCannotDecide) {
  EXPECT_EQ(plan_caveat(9, 1), "One seed cannot separate noise from a real difference: take 3 seeds or more, better 5");
  // The factor is Student's t of 2 and 4 degrees of freedom over the root of 3 and 5, where two are compared (R:
  // qt(0.975, 2)).
  EXPECT_EQ(plan_caveat(2, 3),
            "With 3 seeds a difference must be 2.5 times as large as the deviation of differences between seeds to be "
            "significant; with 5 seeds 1.2 times");
  EXPECT_EQ(plan_caveat(9, 5), "");
  EXPECT_EQ(plan_caveat(1, 1), "");
}

}  // namespace
}  // namespace headshare
