// headshare report: tables and figures of finished comparisons, made again or from several together.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/placeholder.h"
#include "headshare/base/visible.h"
#include "headshare/cli/arguments/args.h"
#include "headshare/cli/tables/comparison_table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/compare/options.h"
#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/merge_results.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

struct ReportOptions {
  Words directories;
  std::string out;
  bool latex = false;
  bool csv = false;
  bool json = false;

  Arguments arguments() {
    Arguments made("report", "Makes the report of one comparison again, or one report of several.");
    made.one_or_more("DIR", "what `headshare compare --out` wrote: a directory with results.json", &directories);
    made.group("Output",
               {naming_path(field("out", &out, "report.html, or a directory for it; needed with several DIRs, else DIR",
                                  {.aliases = {"output-dir"}})),
                field("latex", &latex, "also table.tex beside it, for the package booktabs"),
                field("csv", &csv, "also results.csv (a line per variant) and cells.csv (a line per model)"),
                field("json", &json, "print the results, merged, instead of tables")});
    made.common({"out", "latex", "csv", "json"});
    made.example("report comparison", "the tables, and comparison/report.html again");
    made.example("report comparison offsets --out both.html", "two comparisons on one page");
    made.note(
        "Runs on the same data with the same options become one table, whatever their schemes, seeds and sweeps; "
        "others become sections of one report, and benchmarks that the same encoders were fine-tuned on stand side by "
        "side in its first table. A comparison that is not finished is shown as far as it is.");
    return made;
  }
};

fs::path results_file(const std::string& given) {
  const fs::path path(given);
  HS_CHECK(fs::exists(path), given, " does not exist");
  if (fs::is_regular_file(path)) return path;
  const fs::path file = path / "results.json";
  HS_CHECK(fs::exists(file), given, " has no results.json: it holds no comparison, or one of which no model is ",
           "finished");
  return file;
}

// The models are named relative to results.json; merged, they need names from where the reader stands.
NamedResults read_run(const std::string& given, bool rename_models) {
  const fs::path file = results_file(given);
  NamedResults run{given, read_results(file)};
  if (!rename_models) return run;
  for (Cell& cell : run.results.cells) {
    if (!cell.model.empty()) cell.model = (file.parent_path() / cell.model).lexically_normal().generic_string();
  }
  return run;
}

std::vector<Results> read_all(const Words& directories) {
  std::vector<NamedResults> runs;
  for (const std::string& directory : directories) runs.push_back(read_run(directory, directories.size() > 1));
  ComparisonOptions untouched;
  const nlohmann::json usual = to_json(fields(untouched));
  std::vector<Results> all;
  for (NamedResults& run : merge_results(std::move(runs), usual)) all.push_back(std::move(run.results));
  return all;
}

// Where the page goes; everything else goes beside it.
fs::path page_path(const ReportOptions& options) {
  if (options.out.empty()) {
    if (options.directories.size() > 1) {
      throw UsageError("--out is missing: where should the report of several comparisons go?");
    }
    const fs::path only(options.directories.front());
    return (fs::is_directory(only) ? only : only.parent_path()) / "report.html";
  }
  const fs::path out(options.out);
  const bool is_page = (out.extension() == ".html" || out.extension() == ".htm") && !fs::is_directory(out);
  return is_page ? out : out / "report.html";
}

void write_and_tell(const fs::path& path, const std::string& content) {
  write_file(path, content);
  print_status("wrote " + path.string());
}

void write_files(const ReportOptions& options, const std::vector<Results>& all, const fs::path& page) {
  const fs::path directory = page.parent_path();
  if (!directory.empty()) make_directories(directory);
  write_and_tell(page, html_report(all));
  if (options.csv) {
    write_and_tell(directory / "results.csv", variants_csv(all));
    write_and_tell(directory / "cells.csv", cells_csv(all));
    if (const std::string tasks = tasks_csv(all); !tasks.empty()) write_and_tell(directory / "tasks.csv", tasks);
  }
  if (options.latex) write_and_tell(directory / "table.tex", latex_tables(all));
}

// One object; of comparisons that cannot be one table a list.
std::string json_text(const std::vector<Results>& all) {
  if (all.size() == 1) return to_text(to_json(all.front()));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Results& results : all) list.push_back(to_json(results));
  return to_text(list);
}

std::string tables_text(const std::vector<Results>& all) {
  std::string text = benchmarks_text(all);
  for (const Results& results : all) {
    if (all.size() > 1) {
      text += (text.empty() ? "" : "\n\n") + bold(visible_line(subject_title(results.subject)), Stream::kOut) + "\n\n";
    }
    text += comparison_text(results);
  }
  return text;
}

}  // namespace

int run_report(const Words& words) {
  ReportOptions options;
  Arguments arguments = options.arguments();
  if (!arguments.parse(words)) return kOk;
  const fs::path page = page_path(options);
  const std::vector<Results> all = read_all(options.directories);
  write_files(options, all, page);
  options.json ? print_json(json_text(all)) : print_styled(tables_text(all));
  return kOk;
}

}  // namespace headshare
