#include "headshare/report/html/html_figures.h"

#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "headshare/report/html/html_report.h"
#include "headshare/report/results/results_cases.h"

namespace headshare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// There are three seeds of four schemes; mqa, sha and mhe_mul have the same cache and nearly the same quality.
Results crowded(double scatter) {
  std::vector<Cell> cells;
  for (int64_t seed = 0; seed < 3; ++seed) {
    const double noise = scatter * static_cast<double>(seed - 1);
    cells.push_back(loss_cell("mha", seed, 2.0));
    cells.push_back(loss_cell("mqa", seed, 2.2 + noise));
    cells.push_back(loss_cell("sha", seed, 2.201 - noise));
    cells.push_back(loss_cell("mhe_mul", seed, 2.199 + noise));
  }
  return loss_results(cells);
}

std::string cache_figure(const Results& results) {
  const std::vector<VariantRow> rows = summarise(results);
  return key_figures({results, rows, "c1"}).at(0).svg;
}

// Returns where error bars stand across.
std::multiset<double> bars(const std::string& svg) {
  std::multiset<double> found;
  const std::regex bar("class=\"e [^\"]*\" d=\"M([0-9.]+) [0-9.]+h([0-9.]+)m");
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), end; it != end; ++it) {
    found.insert(std::stod((*it)[1]) + std::stod((*it)[2]) / 2);
  }
  return found;
}

TEST(TradeoffTest, TheSameCacheIsTheSamePlace) {
  const std::multiset<double> places = bars(cache_figure(crowded(0.05)));
  ASSERT_THAT(places, SizeIs(4));
  EXPECT_NEAR(*places.begin(), *std::next(places.begin(), 2), 0.051);  // coordinates have one digit
  EXPECT_GT(*places.rbegin(), *places.begin() + 100);                  // mha caches more
}

// Bars at one place end in caps of different widths.
TEST(TradeoffTest, EveryBarShows) {
  const std::string svg = cache_figure(crowded(0.05));
  for (const char* cap : {"h6.0m", "h10.0m"}) EXPECT_THAT(svg, HasSubstr(cap));
}

TEST(TradeoffTest, AFrontierIsDrawnOfWhatIsDecided) {
  EXPECT_THAT(cache_figure(crowded(0.001)), AllOf(HasSubstr("class=\"frontier\""), HasSubstr("class=\"ring\"")));
  const std::string undecided = cache_figure(crowded(0.2));
  EXPECT_THAT(undecided, Not(HasSubstr("class=\"frontier\"")));
  EXPECT_THAT(undecided, Not(HasSubstr("class=\"ring\"")));
  EXPECT_THAT(undecided, Not(HasSubstr("; on the Pareto frontier")));
  EXPECT_THAT(html_report({crowded(0.2)}), HasSubstr("No Pareto frontier is drawn"));
}

// Raw signatures are for programs: they stand once, where it is told how the page was made.
TEST(HtmlReportTest, NoSignatureInAnAxisOrAFact) {
  Results results = crowded(0.05);
  results.subject.measure = "bleu|nrefs:1|case:mixed";
  for (Cell& cell : results.cells) cell.signature = results.subject.measure;
  const std::string page = html_report({results});
  const std::string shown = page.substr(0, page.find("How it was made"));
  EXPECT_THAT(shown, Not(HasSubstr("nrefs")));
  EXPECT_THAT(shown, HasSubstr("test BLEU"));
  EXPECT_THAT(page, HasSubstr("was computed: <code>bleu|nrefs:1|case:mixed</code>"));
}

}  // namespace
}  // namespace headshare
