// Runs the cells of a comparison one after another and gathers what they found.
#pragma once

#include "headshare/base/file.h"
#include "headshare/compare/grid.h"
#include "headshare/report/results/results.h"

namespace headshare {

// A CellRunner runs one cell. It returns nothing when the cell is finished (its cell.json is there), else why it
// failed.
using CellRunner = std::function<std::optional<std::string>(const CellPlan& plan)>;

// A ComparisonObserver watches a comparison.
class ComparisonObserver {
 public:
  virtual ~ComparisonObserver() = default;
  // This is called before all others, where an earlier call finished some of the cells.
  virtual void on_taken_over(size_t finished, size_t count) = 0;
  // This is called before each cell that is run; `number` counts from 1 and includes cells that were taken over.
  virtual void on_cell(const CellPlan& plan, int64_t number, int64_t count) = 0;
  virtual void on_failure(const CellPlan& plan, const std::string& reason) = 0;
  // This is called at the beginning and after each cell that was run, with all results so far.
  virtual void on_results(const Results& results) = 0;
};

// Runs the cells that are not finished below `home`: finished ones are taken over, failed ones are tried again.
// `results` holds the facts about the whole; its plan, cells and failures are filled in. An exception of the runner
// ends the comparison.
void run_comparison(const std::vector<CellPlan>& plans, const fs::path& home, const CellRunner& runner,
                    ComparisonObserver& observer, Results* results);

// Throws Error when there is too little room below `home` for the cells of `plans` that are not finished.
void check_disk(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home);

}  // namespace headshare
