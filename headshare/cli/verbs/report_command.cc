// headshare report makes tables and figures of finished comparisons, again or from several together.

#include "headshare/base/error.h"
#include "headshare/base/files/made_directories.h"
#include "headshare/base/files/output_file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/files/unfinished.h"
#include "headshare/base/strings/visible.h"
#include "headshare/cli/arguments/args.h"
#include "headshare/cli/tables/comparison_table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/options.h"
#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_page.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/merge_results.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/results_file.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

struct ReportOptions {
  Words directories;
  std::string out;
  bool latex = false;
  bool csv = false;
  bool overwrite = false;
  bool json = false;

  Arguments arguments() {
    Arguments made("report", "Makes the report of one comparison again, or one report of several.");
    made.one_or_more("DIR", "what `headshare compare --out` wrote: a directory with results.json", &directories);
    made.group("Output",
               {naming_path(field("out", &out, "report.html, or a directory for it; needed with several DIRs, else DIR",
                                  {.aliases = {"output-dir"}})),
                field("latex", &latex, "also table.tex beside it, for the packages booktabs and graphicx"),
                field("csv", &csv, "also results.csv (a line per variant) and cells.csv (a line per model)"),
                field("overwrite", &overwrite,
                      "replace an earlier report elsewhere than in DIR, where it is made again anyway"),
                field("json", &json, "print the results, merged, instead of tables")});
    made.common({"out", "latex", "csv", "overwrite", "json"});
    made.example("report comparison", "the tables, and comparison/report.html again");
    made.example("report comparison offsets --out both.html", "two comparisons on one page");
    made.note(
        "Runs on the same data with the same options become one table, whatever their schemes, seeds and sweeps; "
        "others become sections of one report, and benchmarks that the same encoders were fine-tuned on stand side by "
        "side in its first table. A comparison that is not finished is shown as far as it is.");
    return made;
  }
};

fs::path results_path(const std::string& given) {
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
  const fs::path file = results_path(given);
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

// Returns the directory of a comparison, named itself or by its results.json.
fs::path comparison_of(const std::string& given) {
  const fs::path path(given);
  return fs::is_directory(path) ? path : path.parent_path();
}

// Tells whether --out names a file and not a directory for it.
bool names_page(const ReportOptions& options) {
  const fs::path out(options.out);
  return (out.extension() == ".html" || out.extension() == ".htm") && !fs::is_directory(out);
}

// Returns where the page goes; everything else goes beside it.
fs::path page_path(const ReportOptions& options) {
  if (options.out.empty()) {
    if (options.directories.size() > 1) {
      throw UsageError("--out is missing: where should the report of several comparisons go?");
    }
    return comparison_of(options.directories.front()) / "report.html";
  }
  return names_page(options) ? fs::path(options.out) : options.out / fs::path("report.html");
}

// This is one of the files to write: where, and what it will hold.
struct ReportFile {
  OutputFile file;
  std::string (*content)(const std::vector<Results>& all);
};

// A home says which files may be written in a directory. In the directory of a comparison, files under the names that
// `compare` gives are made again.
class Home {
 public:
  Home(const ReportOptions& options, const fs::path& directory)
      : overwrite_(options.overwrite), mark_(comparison_mark(directory)) {
    std::error_code code;
    own_ = options.directories.size() == 1 &&
           fs::equivalent(directory_of(comparison_of(options.directories.front()) / "report.html"), directory, code);
    for (const std::string& given : options.directories) inputs_.push_back(results_path(given).string());
  }

  // Returns a file to write. `named`: the user chose the name, and --overwrite is about that file.
  OutputFile file(const fs::path& path, const char* mark, bool named) const {
    const std::string name = path.filename().string();
    const bool owned = own_ && mark_.owns(name);
    const bool again = owned || (own_ && mark_.may_write(name));
    const bool any = owned || (named && overwrite_);
    return {path, again || overwrite_ ? Overwrite::kYes : Overwrite::kNo, inputs_, any ? "" : mark};
  }

 private:
  bool overwrite_;
  bool own_;  // the files go beside the results of the one comparison
  OutputMark mark_;
  InputPaths inputs_;
};

// Lists the files to write; all are looked at before the first is written.
std::vector<ReportFile> report_files(const ReportOptions& options, const std::vector<Results>& all,
                                     const fs::path& page) {
  const Home home(options, directory_of(page));
  std::vector<ReportFile> files;
  files.push_back({home.file(page, kPageMark, names_page(options)), html_report});
  const auto beside = [&](const char* name, const char* mark, auto* content) {
    files.push_back({home.file(page.parent_path() / name, mark, /*named=*/false), content});
  };
  if (options.csv) {
    beside("results.csv", kCsvMark, variants_csv);
    beside("cells.csv", kCsvMark, cells_csv);
    if (!tasks_csv(all).empty()) beside("tasks.csv", kCsvMark, tasks_csv);
  }
  if (options.latex) beside("table.tex", kLatexMark, latex_tables);
  return files;
}

void write_files(const ReportOptions& options, const std::vector<Results>& all, const fs::path& page) {
  const MadeDirectories made(directory_of(page));
  for (const ReportFile& one : report_files(options, all, page)) {
    one.file.write(one.content(all));
    print_status("wrote " + one.file.path().string());
  }
}

// Returns one object; comparisons that cannot be one table give a list.
std::string all_results_json(const std::vector<Results>& all) {
  if (all.size() == 1) return to_text(results_file(all.front()));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Results& results : all) list.push_back(results_file(results));
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
  options.json ? print_json(all_results_json(all)) : print_styled(tables_text(all));
  return kOk;
}

}  // namespace headshare
