// Runs the cells of a comparison one after another and gathers what they found.
#pragma once

#include "headshare/compare/grid.h"
#include "headshare/report/results/results.h"

namespace headshare {

// How one cell came out: nothing when it is finished (its cell.json is there), else why it failed.
using CellRunner = std::function<std::optional<std::string>(const CellPlan& plan)>;

// What watches a comparison.
class ComparisonObserver {
 public:
  virtual ~ComparisonObserver() = default;
  // Before each cell; `number` counts from 1. Taken over: finished by an earlier, interrupted call.
  virtual void on_cell(const CellPlan& plan, int64_t number, int64_t count, bool taken_over) = 0;
  virtual void on_failure(const CellPlan& plan, const std::string& reason) = 0;
  // After each cell that was not taken over, and after the last, with everything so far.
  virtual void on_results(const Results& results) = 0;
};

// Cells finished below `home` before are taken over, failed ones are tried again. `results` holds the
// facts about the whole; its plan, cells and failures, empty at first, are filled in. What the runner throws ends the
// comparison.
void run_comparison(const std::vector<CellPlan>& plans, const fs::path& home, const CellRunner& runner,
                    ComparisonObserver& observer, Results* results);

// Estimates, made before anything starts. Throw Error when there is too little room for `plans` below
// `home`; the seconds are those of all cells that are not finished.
void check_disk(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home);
double estimated_seconds(const std::vector<CellPlan>& plans, const fs::path& home,
                         const std::function<double(const ComparisonOptions& cell)>& seconds_per_step);

}  // namespace headshare
