#include "headshare/compare/until_decided.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/report/statistics/decision.h"

namespace headshare {
namespace {

Rows undecided_rows(const Results& results, const std::vector<VariantRow>& rows) {
  const VariantRow* reference = reference_row(results, rows);
  return reference == nullptr ? Rows() : decide(results, rows, *reference).undecided;
}

void say_undecided(const Results& results, int64_t seeds) {
  const std::vector<VariantRow> rows = summarise(results);
  notice(join_text("not decided with ", results.looks.back(), " seeds: ",
                   list_text(names_of(undecided_rows(results, rows))), "; continuing to ", seeds, " seeds"));
}

// Gives a notice where differences are not decided because --max-seeds allows no more.
void say_limit(const ComparisonOptions& options, const Results& results) {
  if (options.until_decided == 0 || !results.failed.empty() || results.looks.back() < options.max_seeds) return;
  const std::vector<VariantRow> rows = summarise(results);
  const Rows open = undecided_rows(results, rows);
  if (open.empty()) return;
  notice(join_text("not decided with ", results.looks.back(), " seeds, as many as --max-seeds allows: ",
                   list_text(names_of(open)), "; go on with --resume and more --max-seeds, or a larger margin"));
}

}  // namespace

Forecast with_added_seeds(Forecast first, const ComparisonOptions& options) {
  if (options.until_decided == 0) return first;
  const double times = static_cast<double>(options.max_seeds) / static_cast<double>(options.seeds);
  first.models = first.models / static_cast<size_t>(options.seeds) * static_cast<size_t>(options.max_seeds);
  first.seconds *= times;
  return first;
}

std::optional<int64_t> seeds_to_go_on_with(const ComparisonOptions& options, const Results& results) {
  if (options.until_decided == 0 || !results.failed.empty()) return std::nullopt;
  const int64_t seeds = results.looks.back();
  if (seeds >= options.max_seeds) return std::nullopt;
  const std::vector<VariantRow> rows = summarise(results);
  const Rows undecided = undecided_rows(results, rows);
  if (undecided.empty()) return std::nullopt;
  const auto needed =
      seeds_to_decide(results, *reference_row(results, rows), undecided, options.max_seeds, /*more_looks=*/1);
  return std::clamp(needed.value_or(options.max_seeds), seeds + 1, options.max_seeds);
}

void run_until_decided(const ComparisonCall& call,
                       const std::function<std::vector<CellPlan>(const ComparisonOptions& options)>& plan,
                       ComparisonHost& host, Results* results) {
  ComparisonOptions options = call.options;
  if (options.until_decided > 0) results->looks = {options.seeds};
  run_cells(call, plan(options), host, results);
  while (const std::optional<int64_t> seeds = seeds_to_go_on_with(options, *results)) {
    say_undecided(*results, *seeds);
    options.seeds = *seeds;
    results->looks.push_back(*seeds);
    run_cells(call, plan(options), host, results);
  }
  say_limit(options, *results);
}

}  // namespace headshare
