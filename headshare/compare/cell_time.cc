#include "headshare/compare/cell_time.h"

#include <chrono>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/measure.h"

namespace headshare {
namespace {

// A comparison that takes less than this needs no estimate, which would take a good part of the time.
constexpr double kWorthMeasuring = 30;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

double whole_seconds(const CellTime& time, const TrainOptions& train) {
  const TrainOptions resolved = resolve(train);
  const int64_t every = *resolved.evaluate_every;
  const int64_t evaluations = (resolved.steps + every - 1) / every;
  return time.start + time.step * static_cast<double>(resolved.steps) +
         time.evaluation * static_cast<double>(evaluations) + time.closing;
}

CellTime measure_cell(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device, double start) {
  const double began = now();
  const Trial trial = open_trial(experiment, cell, device);
  CellTime time{.start = start + now() - began};
  time.step = seconds_per_step(*trial.task, cell.train, device);
  time.evaluation = evaluation_seconds(*trial.task, Part::kValidation);
  time.closing = evaluation_seconds(*trial.task, Part::kTest) + measuring_seconds(trial);
  return time;
}

double estimated_seconds(const std::vector<CellPlan>& plans, const fs::path& home,
                         const std::function<CellTime(const ComparisonOptions& cell)>& measure) {
  std::vector<const CellPlan*> left;
  for (const CellPlan& plan : plans) {
    const bool finished = !home.empty() && is_finished(home, plan.key);
    if (!plan.weights_of && !finished) left.push_back(&plan);
  }
  double total = 0;
  bool is_short = false;
  CellTime first;
  std::map<std::string, CellTime> measured;
  for (const CellPlan* plan : left) {
    const std::string like = plan->key.setting + " " + plan->key.variant;
    if (!is_short && !measured.contains(like)) measured[like] = measure(plan->options);
    if (plan == left.front()) {
      first = measured[like];
      is_short = whole_seconds(first, plan->options.train) * static_cast<double>(left.size()) < kWorthMeasuring;
    }
    total += whole_seconds(is_short ? first : measured[like], plan->options.train);
  }
  return total;
}

}  // namespace headshare
