// These targets read results.json of a comparison with everything that is made of it, and metrics.jsonl of a run that
// goes on.
#include "headshare/base/error.h"
#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/merge_results.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/benchmarks_table.h"
#include "headshare/report/statistics/results_file.h"
#include "headshare/train/jsonl.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

void read_reports(const fs::path& folder) {
  const Results results = read_results(folder / "results.json");
  const std::string text = to_text(results_file(results));
  // The written results can be read.
  const Results again = results_from_json(nlohmann::json::parse(text), "what was written");
  if (again.cells.size() != results.cells.size()) throw std::logic_error("other cells after writing");
  may_refuse([&] { use(merge_results({{"one", results}, {"two", again}}).size()); });
  use(html_report({results, again}).size());
  use(variants_csv({results}).size() + cells_csv({results}).size() + tasks_csv({results}).size());
  use(latex_tables({results, again}).size());
}

void read_metrics(const fs::path& folder) {
  JsonlWriter writer = JsonlWriter::resume(folder / "metrics.jsonl", 2);
  writer.write({{"step", 3}});
}

Case case_of(const Results& results) { return {{"results.json", to_text(results_file(results))}}; }

}  // namespace

std::vector<Target> targets() {
  Results tuned = tuned_results({tuned_cell("mha", 1, 50, 60), tuned_cell("mhe_add", 1, 49, 61)});
  add_failed(&tuned, {"sha", "", 1}, "its loss became nan");
  const std::vector<Case> seeds = {
      case_of(loss_results({loss_cell("mha", 1, 3), loss_cell("mha", 2, 3.1), loss_cell("mhe_mul", 1, 3.2)})),
      case_of(accuracy_results({loss_cell("mha", 1, 3, "learning-rate=0.1"), loss_cell("mqa", 1, 2)})), case_of(tuned)};
  const std::string lines = "{\"step\":1,\"loss\":2.5}\n{\"event\":\"checkpoint\"}\n{\"step\":2}\n{\"step\":3}\n{\"ste";
  return {{.name = "results", .read = read_reports, .seeds = seeds},
          {.name = "metrics", .read = read_metrics, .seeds = {{{"metrics.jsonl", lines}}}}};
}

}  // namespace headshare::fuzz
