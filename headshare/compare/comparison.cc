#include "headshare/compare/comparison.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
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

Gathering::Gathering(const std::vector<CellPlan>& plans, const fs::path& home, ComparisonObserver& observer,
                     Results* results)
    : plans_(plans), home_(home), observer_(observer), results_(results), reasons_(plans.size()) {
  results_->planned.clear();
  for (const CellPlan& plan : plans_) {
    results_->planned.push_back(plan.key);
    finished_.push_back(finished_cell(home_, plan.key));
  }
  report();  // cells of an earlier call are reported from the beginning, even if no other will be
  if (!results_->cells.empty()) observer_.on_taken_over(results_->cells.size(), plans_.size());
}

void Gathering::report() {
  results_->cells.clear();
  results_->failed.clear();
  for (size_t i = 0; i < plans_.size(); ++i) {
    if (finished_[i]) results_->cells.push_back(without_shared(*finished_[i], results_->options));
    if (!reasons_[i].empty()) results_->failed.push_back({.key = plans_[i].key, .reason = reasons_[i]});
  }
  observer_.on_results(*results_);
}

size_t Gathering::open() const {
  size_t count = 0;
  for (size_t i = 0; i < plans_.size(); ++i) count += is_open(i) ? 1 : 0;
  return count;
}

std::optional<size_t> Gathering::weights_of(size_t cell) const {
  const std::optional<CellKey>& key = plans_[cell].weights_of;
  for (size_t i = 0; key && i < plans_.size(); ++i) {
    if (plans_[i].key == *key) return i;
  }
  return std::nullopt;
}

void Gathering::begin(size_t cell) {
  observer_.on_cell(plans_[cell], static_cast<int64_t>(cell) + 1, static_cast<int64_t>(plans_.size()));
}

bool Gathering::take(size_t cell) {
  if (finished_[cell]) return true;
  finished_[cell] = finished_cell(home_, plans_[cell].key);
  if (finished_[cell]) report();
  return finished_[cell].has_value();
}

void Gathering::fail(size_t cell, const std::string& reason) {
  reasons_[cell] = reason.empty() ? "it failed without a word" : reason;
  observer_.on_failure(plans_[cell], reasons_[cell]);
  report();
}

void check_disk(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  double kept = 0;
  double most = 0;
  for (const CellPlan& plan : plans) {
    if (plan.weights_of || is_finished(home, plan.key)) continue;
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
