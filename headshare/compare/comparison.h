// Gathers what the cells of a comparison found, in whatever order and wherever they ran.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/compare/grid.h"
#include "headshare/report/results/results.h"

namespace headshare {

// A ComparisonObserver watches a comparison.
class ComparisonObserver {
 public:
  virtual ~ComparisonObserver() = default;
  // This is called before all others, where an earlier call finished some of the cells.
  virtual void on_taken_over(size_t finished, size_t count) = 0;
  // This is called when a cell is started; `number` is its place in the plan, from 1.
  virtual void on_cell(const CellPlan& plan, int64_t number, int64_t count) = 0;
  virtual void on_failure(const CellPlan& plan, const std::string& reason) = 0;
  // This is called at the beginning and after each cell that was run, with all results so far.
  virtual void on_results(const Results& results) = 0;
};

// A Gathering knows which cells of a plan are finished, failed or open. Cells that are finished below `home` are taken
// over; those that failed in an earlier call are open again. `results` holds the facts about the whole; its plan, cells
// and failures are filled in, in the order of the plan, and the observer hears of them after each change.
class Gathering {
 public:
  // All references outlive the gathering. The observer hears of the results so far, then of cells that were taken over.
  Gathering(const std::vector<CellPlan>& plans, const fs::path& home, ComparisonObserver& observer, Results* results);

  const std::vector<CellPlan>& plans() const { return plans_; }
  bool is_finished(size_t cell) const { return finished_[cell].has_value(); }
  bool is_open(size_t cell) const { return !finished_[cell] && reasons_[cell].empty(); }
  size_t open() const;                                  // how many are
  std::optional<size_t> weights_of(size_t cell) const;  // the cell whose weights this one takes

  // Says that a cell is started.
  void begin(size_t cell);
  // Takes the cell over if it is finished by now; returns whether it is.
  bool take(size_t cell);
  void fail(size_t cell, const std::string& reason);

 private:
  void report();

  const std::vector<CellPlan>& plans_;
  const fs::path& home_;
  ComparisonObserver& observer_;
  Results* results_;
  std::vector<std::optional<Cell>> finished_;
  std::vector<std::string> reasons_;  // why a cell failed; "" where it did not
};

// Throws Error when there is too little room below `home` for the cells of `plans` that are not finished.
void check_disk(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home);

}  // namespace headshare
