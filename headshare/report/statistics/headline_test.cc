#include "headshare/report/statistics/headline.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace headline_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Headline of(const Results& results) { return headline(results, summarise(results)); }

// Differences scatter by +-`scatter` around those given.
Results three_seeds(double mqa, double sha, double scatter = 0.005) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const double noise = scatter * static_cast<double>(seed - 1);
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("mqa", seed, 2.0 + mqa + noise));
    cells.push_back(loss_cell("sha", seed, 2.0 + sha - noise));
  }
  return loss_results(cells);
}

TEST(HeadlineTest, NamesTheBestAndTheCheapestThatKeepsUp) {
  const Headline made = of(three_seeds(0.005, 0.2));
  EXPECT_EQ(made.finding,
            "mha has the best test perplexity of 3 schemes: 7.39 (mean of 3 seeds). Significantly worse than mha: sha. "
            "The cheapest that loses less than 2% in perplexity (0.0198 in test loss) is mqa: 62% of mha's attention "
            "parameters and 25% of its cache, at +0.0050 test loss [-0.0082, +0.0182].");
  EXPECT_THAT(made.caveats, Contains("Not significantly different does not mean equal: differences in test loss below "
                                     "0.0132 cannot be seen with these seeds."));
}

// The noisiest variant would be recommended otherwise: its interval contains 0 most easily.
TEST(HeadlineTest, RecommendsNothingThatMayBeWorse) {
  const Headline made = of(three_seeds(0.005, 0.2, 0.01));
  EXPECT_THAT(made.finding, Not(HasSubstr("heapest")));
  EXPECT_THAT(made.finding, HasSubstr("Whether mqa loses less than 2% in perplexity (0.0198 in test loss) is not "
                                      "decided; about 5 seeds would decide it."));
  EXPECT_THAT(of(three_seeds(0.01979, 0.2)).finding, HasSubstr("it would take more than 50 seeds."));
}

// Two seeds can agree by luck.
TEST(HeadlineTest, JudgesNobodyBelowThreeSeeds) {
  Results results = three_seeds(0.1, 0.2, 0.0001);
  std::erase_if(results.cells, [](const Cell& cell) { return cell.key.seed == 2; });
  std::erase_if(results.planned, [](const CellKey& key) { return key.seed == 2; });
  const Headline made = of(results);
  EXPECT_THAT(made.text(), Not(HasSubstr("ignificantly")));
  EXPECT_THAT(made.caveats, Contains(HasSubstr("Two seeds cannot separate noise from a real difference")));
}

// One of the variants lost a seed: nothing is said of every scheme.
TEST(HeadlineTest, SaysWhatIsNotJudged) {
  Results results = three_seeds(0.1, 0.2);
  std::erase_if(results.cells, [](const Cell& cell) { return cell.key.variant == "mqa" && cell.key.seed == 1; });
  Headline made = of(results);
  EXPECT_THAT(made.finding, HasSubstr("Significantly worse than mha: sha. Not judged, for want of 3 seeds: mqa."));
  EXPECT_THAT(made.caveats, Contains(HasSubstr("Fewer seeds than planned: mqa (2 of 3).")));
}

// Everybody solves this task: seeds that agree say nothing of what they would miss.
TEST(HeadlineTest, NamesNoResolutionWhereEverySeedAgrees) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    for (const char* scheme : {"mha", "mqa"}) cells.push_back(loss_cell(scheme, seed, 2.0));
  }
  EXPECT_THAT(of(loss_results(cells)).caveats, Not(Contains(HasSubstr("cannot be seen"))));
}

TEST(HeadlineTest, SaysWhenNothingSeparates) {
  const Headline made = of(three_seeds(0.005, 0.004));
  EXPECT_THAT(made.finding, HasSubstr("No scheme is significantly different from mha"));
  EXPECT_THAT(made.finding, HasSubstr("is sha: 38% of mha's"));  // the cheaper of both
}

TEST(HeadlineTest, SaysWhenNothingKeepsUp) {
  const Headline made = of(three_seeds(0.1, 0.2));
  EXPECT_THAT(made.finding, HasSubstr("Every other scheme is significantly worse than mha."));
  EXPECT_THAT(made.finding, Not(HasSubstr("heapest is")));
  Results results = three_seeds(0.1, 0.005);
  for (Cell& cell : results.cells) {
    if (cell.key.variant == "sha") cell.size.attention_parameters = kMhaParameters;
  }
  EXPECT_THAT(of(results).finding,
              HasSubstr("No scheme with fewer attention parameters loses less than 2% in perplexity"));
  EXPECT_THAT(of(three_seeds(-0.1, 0.2)).finding, HasSubstr("Significantly better than mha: mqa. Significantly worse"));
}

TEST(HeadlineTest, HigherIsBetterForAccuracy) {
  const std::vector<Cell> one_seed = {loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 4.0)};
  const std::string first = of(accuracy_results(one_seed)).finding;
  EXPECT_THAT(first, HasSubstr("mha has the best test accuracy of 2 schemes: 0.800; guessing"));
  EXPECT_THAT(of(accuracy_results({loss_cell("mha", 0, 2.0)})).finding,
              HasSubstr("mha has a test accuracy of 0.800; guessing reaches"));
  EXPECT_THAT(first, Not(HasSubstr("ignificantly")));  // one seed judges nobody
  std::vector<Cell> seeds = one_seed;
  for (int64_t seed = 1; seed < 3; ++seed) {
    seeds.push_back(loss_cell("mha", seed, 2.0 + 0.01 * static_cast<double>(seed)));
    seeds.push_back(loss_cell("sha", seed, 4.0 + 0.02 * static_cast<double>(seed)));
  }
  EXPECT_THAT(of(accuracy_results(seeds)).finding,
              HasSubstr("Significantly worse than mha: sha. No scheme with fewer attention parameters loses less than "
                        "2% in test accuracy."));
}

// Returns accuracies of mha and of two others whose seeds scatter by so much.
Results scattered_accuracies(double mqa, double sha) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const auto away = static_cast<double>(seed - 1);
    cells.push_back(loss_cell("mha", seed, 5.0));
    cells.push_back(loss_cell("mqa", seed, 5.0 + 10 * mqa * away));  // an accuracy of 1 - loss / 10
    cells.push_back(loss_cell("sha", seed, 5.0 + 10 * sha * away));
  }
  return accuracy_results(cells);
}

// No accuracy is more than 1 away from another one.
TEST(HeadlineTest, NamesNoResolutionBeyondTheFullScale) {
  EXPECT_THAT(of(scattered_accuracies(0.45, 0.4)).caveats,
              Contains("Not significantly different does not mean equal: no difference in test accuracy can be seen "
                       "for mqa or sha with these seeds."));
  EXPECT_THAT(of(scattered_accuracies(0.45, 0.01)).caveats,
              Contains(HasSubstr("; no difference can be seen for mqa.")));
  EXPECT_THAT(of(scattered_accuracies(0.02, 0.01)).text(), Not(HasSubstr("no difference")));
}

TEST(HeadlineTest, IsHonestAboutWhatIsMissing) {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("mqa", 0, 2.1)});
  results.subject.has_test_part = false;
  results.planned.push_back({"gqa", "", 0});
  add_failed(&results, {"sha", "", 0}, "killed");
  const Headline made = of(results);
  EXPECT_THAT(made.caveats, Contains(HasSubstr("Partial: 2 of 4 models finished")));
  EXPECT_THAT(made.caveats, Contains(HasSubstr("1 model failed")));
  EXPECT_THAT(made.caveats, Contains(HasSubstr("One seed cannot separate noise from a real difference")));
  EXPECT_THAT(made.caveats, Contains(HasSubstr("selection-biased")));
  EXPECT_THAT(made.text(), HasSubstr("validation perplexity"));
}

TEST(HeadlineTest, LeavesNothingToCompareUnsaid) {
  EXPECT_THAT(of(loss_results({loss_cell("mqa", 0, 2.1)})).finding, HasSubstr("mha is not among the finished"));
  Results nothing = loss_results({});
  nothing.planned.push_back({"mha", "", 0});
  EXPECT_EQ(of(nothing).finding, "No model is finished yet.");
  nothing.failed.push_back({{"mha", "", 0}, "killed"});
  EXPECT_EQ(of(nothing).finding, "Every model failed.");
  EXPECT_THAT(of(loss_results({loss_cell("mha", 0, 2.1)})).text(), Not(HasSubstr("noise is")));
}

// The encoders are of one scheme: "wordpiece" has a table, "hash-md-proj" hashes words.
Results embeddings(const std::string& random_tokens, const std::vector<std::string>& names) {
  std::vector<Cell> cells;
  Results results;
  for (int64_t seed = 0; seed < 3; ++seed) {
    for (const std::string& name : names) {
      cells.push_back(
          loss_cell(name, seed,
                    0.5 + 0.1 * static_cast<double>(cells.size() % names.size()) + 0.001 * static_cast<double>(seed)));
    }
  }
  results = loss_results(cells);
  results.subject.measure = "three-way-loss";
  results.options["random-tokens"] = random_tokens;
  results.references.quality = names.front();
  for (const std::string& name : names) {
    const bool table = name == "wordpiece";
    results.variants.push_back({name,
                                "mha",
                                {{"tokenizer", table ? "wordpiece" : name.substr(0, name.rfind('-'))},
                                 {"token-embedding", table ? "table" : "hash-" + name.substr(name.rfind('-') + 1)}}});
  }
  return results;
}

TEST(HeadlineTest, ComparesNoLossesOfOtherTokens) {
  const Results both = embeddings("words", {"wordpiece", "hash-md-proj", "hash-lsh-emb"});
  EXPECT_THAT(of(both).finding, HasSubstr("No embedding is best by these losses: they are of different tokens."));
  EXPECT_THAT(of(both).finding, Not(HasSubstr("ignificantly")));
  const std::vector<VariantRow> rows = summarise(both);
  EXPECT_EQ(rows[1].why_no_difference, "losses of other tokens than those of wordpiece");
  EXPECT_EQ(rows[1].prr.reason_undefined, rows[1].why_no_difference);
  EXPECT_EQ(rows[1].table_prr.reason_undefined, rows[1].why_no_difference);
  EXPECT_DOUBLE_EQ(rows[0].table_prr.value.value(), 100);
}

TEST(HeadlineTest, ComparesLossesOfWordsWhereRandomTokensAreWords) {
  EXPECT_THAT(of(embeddings("words", {"hash-md-proj", "hash-lsh-emb"})).finding,
              HasSubstr("hash-md-proj has the best test three-way loss of 2"));
  EXPECT_THAT(of(embeddings("paper", {"hash-md-proj", "hash-lsh-emb"})).finding, HasSubstr("No embedding is best"));
  EXPECT_THAT(of(embeddings("paper", {"hash-md-proj", "hash-lsh-proj"})).finding, HasSubstr("has the best"));
}

TEST(HeadlineTest, ComparesScoresOfTasksWhateverReadsThem) {
  Results tuned = embeddings("paper", {"wordpiece", "hash-md-proj"});
  tuned.subject.tasks = {"glue/cola"};
  for (Cell& cell : tuned.cells) cell.tasks = {{.task = "glue/cola", .score = 50}};
  EXPECT_THAT(of(tuned).finding, HasSubstr("has the best"));
  EXPECT_TRUE(summarise(tuned)[1].table_prr.value.has_value());
}

}  // namespace headline_test
}  // namespace headshare
