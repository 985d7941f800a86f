#include "headshare/report/exports/exports.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "headshare/base/testing.h"
#include "headshare/report/exports/report_files.h"
#include "headshare/report/html/html_page.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace exports_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Results example() {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.1), loss_cell("mhe_mul", 0, 2.2),
                                  loss_cell("mhe_mul", 1, 2.3), loss_cell("sha", 0, 2.3), loss_cell("sha", 1, 2.35)});
  add_failed(&results, {"mqa", "", 0}, "out of \"memory\",\n8 GiB_needed & <more>");
  return results;
}

// Reads RFC 4180 back: records of fields.
std::vector<std::vector<std::string>> read_csv(const std::string& csv) {
  std::vector<std::vector<std::string>> records(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < csv.size(); ++i) {
    if (quoted ? csv[i] == '"' && csv[i + 1] != '"' : csv[i] == '"') {
      quoted = !quoted;
    } else if (quoted) {
      i += csv[i] == '"' ? 1 : 0;
      records.back().back() += csv[i];
    } else if (csv[i] == ',') {
      records.back().emplace_back();
    } else if (csv[i] == '\r' && csv[i + 1] == '\n') {
      ++i;
      records.push_back({""});
    } else {
      records.back().back() += csv[i];
    }
  }
  records.pop_back();
  return records;
}

std::string field_of(const std::vector<std::vector<std::string>>& records, size_t line, const std::string& name) {
  const auto found = std::find(records[0].begin(), records[0].end(), name);
  return found == records[0].end() ? "no such column" : records[line][static_cast<size_t>(found - records[0].begin())];
}

TEST(CsvTest, HoldsALineForEachScheme) {
  const auto records = read_csv(variants_csv({example()}));
  ASSERT_THAT(records, SizeIs(5));
  EXPECT_THAT(records, Each(SizeIs(records[0].size())));
  EXPECT_EQ(field_of(records, 2, "scheme"), "mhe_mul");
  EXPECT_NEAR(std::stod(field_of(records, 2, "minus_reference")), 0.2, 1e-12);
  EXPECT_EQ(field_of(records, 1, "minus_reference"), "");
  EXPECT_EQ(std::stod(field_of(records, 2, "loss")), (2.2 + 2.3) / 2);  // every digit
  EXPECT_EQ(field_of(records, 2, "quality_low"), "");                   // two seeds
  EXPECT_EQ(field_of(records, 3, "peop"), "");
  EXPECT_EQ(field_of(records, 4, "failed_cells"), "1");
  EXPECT_EQ(field_of(records, 4, "quality"), "");
}

TEST(CsvTest, IntervalsTakeThreeSeeds) {
  const auto records = read_csv(
      variants_csv({loss_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.1), loss_cell("mha", 2, 2.3)})}));
  EXPECT_LT(std::stod(field_of(records, 1, "quality_low")), std::stod(field_of(records, 1, "quality")));
  EXPECT_LT(std::stod(field_of(records, 1, "quality")), std::stod(field_of(records, 1, "quality_high")));
}

TEST(CsvTest, HoldsALineForEachCell) {
  const auto records = read_csv(cells_csv({example(), accuracy_results({loss_cell("mha", 0, 2.0)})}));
  ASSERT_THAT(records, SizeIs(9));
  EXPECT_THAT(records, Each(SizeIs(records[0].size())));
  EXPECT_EQ(field_of(records, 7, "state"), "failed");
  EXPECT_EQ(field_of(records, 7, "reason"), "out of \"memory\",\n8 GiB_needed & <more>");
  EXPECT_EQ(field_of(records, 7, "loss"), "");
  EXPECT_EQ(field_of(records, 8, "subject"), "offsets");
  EXPECT_EQ(field_of(records, 8, "bits_per_byte"), "");
}

// A score's name comes from the file and heads a column.
TEST(CsvTest, QuotesNamesOfScores) {
  Results results = example();
  for (Cell& cell : results.cells) cell.scores.push_back({.name = "=cmd(\"a\", 1)", .value = 0.5});
  for (const auto& records : {read_csv(variants_csv({results})), read_csv(cells_csv({results}))}) {
    EXPECT_THAT(records, Each(SizeIs(records[0].size())));
    EXPECT_EQ(std::stod(field_of(records, 1, "'=cmd(\"a\", 1)")), 0.5);
  }
}

// `report --overwrite` tells our files from others by this mark.
TEST(MarkTest, LeadsEveryFile) {
  const std::vector<Results> all = {example()};
  const std::vector<Results> tasks = {tuned_results({tuned_cell("mha", 0, 40, 60)})};
  for (const std::string& csv : {variants_csv(all), cells_csv(all), tasks_csv(tasks)}) {
    EXPECT_THAT(csv, StartsWith(kCsvMark));
  }
  EXPECT_THAT(latex_tables(all), StartsWith(kLatexMark));
  EXPECT_LT(html_report(all).find(kPageMark), 200u);
}

TEST(LatexTest, EscapesAndMarksTheBest) {
  Results results = example();
  results.cells[2].key.variant = results.planned[2].variant = "a&b%$#_{}~^\\<\"ü";
  const std::string table = latex_tables({results});
  EXPECT_THAT(table, HasSubstr("a\\&b\\%\\$\\#\\_\\{\\}\\textasciitilde{}\\textasciicircum{}\\textbackslash{}"
                               "\\textless{}''? & $1$"));
  EXPECT_THAT(table, HasSubstr("\nmha & $2$ & $2{,}048$ & \\boldmath$7.78 \\pm0.55$ & -- &"));
  EXPECT_THAT(table, HasSubstr("\n% Failed: mqa seed 0: out of \"memory\", 8 GiB_needed & <more>\n"));
  EXPECT_THAT(table, HasSubstr("\nmqa & $0$ & -- & -- & -- & -- & -- & -- & -- \\\\\n"));
}

// The interval of an accuracy stands behind it; perplexities have that of their difference to mha.
TEST(LatexTest, AccuraciesHaveTheirInterval) {
  const std::string table =
      latex_tables({accuracy_results({loss_cell("mha", 0, 1.0), loss_cell("mha", 1, 0.8), loss_cell("mha", 2, 0.9)})});
  EXPECT_THAT(table, HasSubstr("\\boldmath$0.910 \\pm0.010$ $[0.885,\\,0.935]$ & "));
  EXPECT_THAT(latex_tables({example()}), Not(HasSubstr("\\pm0.55$ $[")));
}

// A paper needs this around the numbers: a float that text can refer to, with another label for each.
TEST(LatexTest, TablesHaveACaptionAndALabel) {
  const std::string tables = latex_tables({example(), example()});
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (size_t at = tables.find(part); at != std::string::npos; at = tables.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\\begin{table}\n\\centering\n\\caption{Language model: Two seeds cannot separate noise"), 2u);
  // The table is no wider than the text: it has its own size within the float, whatever size surrounds that.
  const std::string shrunk =
      "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\\begin{tabular}";
  EXPECT_EQ(count("\\label{tab:language-model}\n" + shrunk), 1u);
  EXPECT_EQ(count("\\label{tab:language-model-2}\n" + shrunk), 1u);
  EXPECT_EQ(count("\\end{tabular}}\n\\end{table}\n"), 2u);
  const std::string tasks = latex_tables({tuned_results({tuned_cell("mha", 0, 40, 60)})});
  EXPECT_THAT(tasks, HasSubstr("\\label{tab:glue}"));
  EXPECT_THAT(tasks, HasSubstr("\\caption{GLUE: Tasks; the best in bold"));
  EXPECT_THAT(tasks, HasSubstr("\\label{tab:glue-tasks}"));
}

// Two of three seeds are grey on the page, and every form says how many there are.
TEST(FewerSeedsTest, SayHowManyThereAre) {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.1), loss_cell("mha", 2, 2.1),
                                  loss_cell("mqa", 0, 2.2), loss_cell("mqa", 2, 2.3)});
  add_failed(&results, {"mqa", "", 1}, "killed");
  EXPECT_THAT(latex_tables({results}), HasSubstr("\nmqa & $2$ of $3$ & "));
  const std::string page = html_report({results});
  EXPECT_THAT(page, HasSubstr("<tr class=\"few\">"));
  EXPECT_THAT(page, HasSubstr("<span class=\"sub\">2 of 3 seeds</span>"));
  EXPECT_THAT(page, HasSubstr("aria-label=\"mqa: test perplexity 9.50 ±0.67, mean of 2 of 3 planned seeds; "));
  EXPECT_THAT(page, HasSubstr(">mqa, 2 of 3 seeds</text>"));  // beside its point
  EXPECT_THAT(page, HasSubstr(">mqa 2/3</text>"));            // where there is less room
  EXPECT_THAT(page, HasSubstr("class=\"m s2 grey\""));
  EXPECT_THAT(page, Not(HasSubstr("class=\"m s0 grey\"")));
  EXPECT_THAT(page, HasSubstr("Fewer seeds than planned: mqa (2 of 3)."));
}

// Each row has the columns that the head announces.
TEST(LatexTest, RowsAreComplete) {
  for (const char* setting : {"", "learning-rate=0.001"}) {
    const std::string table = latex_tables({loss_results({loss_cell("mha", 0, 2.0, setting)})});
    const size_t begin = table.find("\\begin{tabular}{") + 16;
    const size_t columns = table.find('}', begin) - begin;
    const std::string row = table.substr(table.find("\nmha &"));
    EXPECT_EQ(std::count(row.begin(), row.begin() + static_cast<long>(row.find("\\\\")), '&'), columns - 1);
  }
}

TEST(ReportFilesTest, WritesWhatIsAskedFor) {
  TemporaryDirectory directory;
  const auto names = [&] {
    std::vector<std::string> made;
    for (const auto& entry : fs::directory_iterator(directory.path())) made.push_back(entry.path().filename().string());
    std::sort(made.begin(), made.end());
    return made;
  };
  write_reports(directory.path(), example());
  EXPECT_THAT(names(), ElementsAre("cells.csv", "report.html", "results.csv", "results.json"));
  write_reports(directory.path(), example(), {.results = false, .csv = false, .html = false, .latex = true});
  EXPECT_THAT(names(), ElementsAre("cells.csv", "report.html", "results.csv", "results.json", "table.tex"));
  EXPECT_EQ(read_results(directory / "results.json").cells.size(), 6u);
}

TEST(HtmlReportTest, EscapesEverything) {
  const std::string evil = "<script>alert('x')</script><img src=x onerror=\"y\">";
  Results results = example();
  results.subject = {.name = evil, .sentence = evil, .data = evil, .measure = evil, .block = evil};
  results.command = results.match = evil;
  results.environment = {{evil, {{evil, {evil, 1}}}}, {"list", {{{evil, evil}}}}};
  results.options = {{evil, evil}};
  for (CellKey& key : results.planned) key.setting = evil;
  for (Cell& cell : results.cells) cell.key.setting = evil;
  results.failed[0] = {{"mqa", evil, 0}, evil};
  results.planned.push_back({evil, evil, 0});
  results.cells.push_back(loss_cell(evil, 0, 2.0, evil));
  const std::string page = html_report({results, results});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
}

TEST(HtmlReportTest, NeedsNothingToBeFinished) {
  Results results = loss_results({});
  results.planned = {{"mha", "", 0}, {"sha", "", 0}};
  EXPECT_THAT(html_report({results}), HasSubstr("No model is finished yet."));
  results.planned.clear();
  EXPECT_THAT(html_report({results}), HasSubstr("</html>"));
}

TEST(TasksOfABenchmarkTest, StandInEveryForm) {
  const Results results = tuned_results({tuned_cell("mha", 0, 40, 60), tuned_cell("mha", 1, 42, 60),
                                         tuned_cell("sha", 0, 30, 64), tuned_cell("sha", 1, 30, 66)});
  const auto records = read_csv(tasks_csv({results}));
  ASSERT_THAT(records, SizeIs(1 + 2 * 2));
  const auto at = [&](size_t line, const std::string& name) {
    const auto& names = records[0];
    return records[line][static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  };
  EXPECT_EQ(at(1, "scheme"), "mha");
  EXPECT_EQ(at(1, "task"), "glue/cola");
  EXPECT_EQ(at(1, "score"), "41");
  EXPECT_EQ(at(4, "score"), "65");
  EXPECT_EQ(tasks_csv({example()}), "");
  const std::string latex = latex_tables({results});
  EXPECT_THAT(latex, HasSubstr("Scheme & cola & rte \\\\\n"));
  EXPECT_THAT(latex, HasSubstr("mha & \\boldmath$41.00 \\pm1.41$ & $60.00 \\pm0.00$"));
  const std::string page = html_report({results});
  EXPECT_THAT(page, HasSubstr(">GLUE: Two seeds cannot separate noise"));
  EXPECT_THAT(page, HasSubstr("<strong>65.00</strong><span class=\"sub\">±1.41</span>"));
  EXPECT_THAT(page, HasSubstr("one pre-trained encoder"));
}

TEST(TasksOfABenchmarkTest, OfOneTaskTheMetricsStandSideBySide) {
  Results results = tuned_results({tuned_cell("mha", 0, 40, 60), tuned_cell("sha", 0, 30, 64)});
  results.subject.tasks = {"squad"};
  for (Cell& cell : results.cells) {
    cell.tasks.resize(1);
    cell.tasks[0].task = "squad";
    cell.tasks[0].metrics = {
        {.name = "exact", .value = 31.25}, {.name = "total", .value = 9}, {.name = "best_f1_thresh", .value = -2}};
  }
  const std::string latex = latex_tables({results});
  EXPECT_THAT(latex, HasSubstr("Scheme & exact \\\\\n")) << "a count and a threshold are no scores";
  EXPECT_THAT(latex, HasSubstr("31.25"));
}

}  // namespace exports_test
}  // namespace headshare
