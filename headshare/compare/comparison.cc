#include "headshare/compare/comparison.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/compare/cell_run.h"

namespace headshare {

namespace {

// Drops the options of a cell that the comparison's own options say already.
Cell without_shared(Cell cell, const nlohmann::json& shared) {
  for (auto option = cell.options.begin(); option != cell.options.end();) {
    const auto same = shared.find(option.key());
    option = same != shared.end() && *same == *option ? cell.options.erase(option) : std::next(option);
  }
  return cell;
}

}  // namespace

void run_comparison(const std::vector<CellPlan>& plans, const fs::path& home, const CellRunner& runner,
                    ComparisonObserver& observer, Results* results) {
  std::vector<std::optional<Cell>> finished;
  results->planned.clear();
  results->failed.clear();
  for (const CellPlan& plan : plans) {
    results->planned.push_back(plan.key);
    finished.push_back(finished_cell(home, plan.key));
  }
  const auto report = [&] {
    results->cells.clear();
    for (const std::optional<Cell>& cell : finished) {
      if (cell) results->cells.push_back(without_shared(*cell, results->options));
    }
    observer.on_results(*results);
  };
  report();  // cells of an earlier call are reported from the beginning, even if no other will be
  if (!results->cells.empty()) observer.on_taken_over(results->cells.size(), plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    const CellPlan& plan = plans[i];
    if (finished[i]) continue;
    observer.on_cell(plan, static_cast<int64_t>(i) + 1, static_cast<int64_t>(plans.size()));
    if (const std::optional<std::string> failure = runner(plan)) {
      results->failed.push_back({.key = plan.key, .reason = *failure});
      observer.on_failure(plan, *failure);
    } else {
      finished[i] = finished_cell(home, plan.key);
      HS_CHECK(finished[i], "the process of ", plan.directory(), " ended well but left no cell.json");
    }
    report();
  }
}

void check_disk(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  double kept = 0;
  double most = 0;
  for (const CellPlan& plan : plans) {
    if (plan.weights_of || fs::exists(cell_home(home, plan.key) / "cell.json")) continue;
    const double weights = parameter_bytes(experiment.model(plan.options));
    kept += weights;
    // A training cell keeps its checkpoints and the one being written (weights, two moments and the averages), and has
    // the best model twice while it is replaced.
    const TrainOptions& train = plan.options.train;
    const int64_t checkpoints = std::max(train.keep_last, train.average_last) + 1;
    most = std::max(most, weights * (static_cast<double>(checkpoints) * (train.ema_decay > 0 ? 4 : 3) + 1));
  }
  const double needed = kept + most;
  std::error_code unknown;
  const fs::space_info space = fs::space(home, unknown);
  if (unknown) return;
  HS_CHECK(needed <= static_cast<double>(space.available), "the models and checkpoints of this comparison take about ",
           format_bytes(needed), " and ", format_bytes(static_cast<double>(space.available)), " are free where ",
           home.string(), " lies; use another --out, fewer --schemes or --seeds, or smaller models");
}

}  // namespace headshare
