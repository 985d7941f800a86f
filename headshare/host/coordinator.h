// The coordinator of a comparison hands its cells to an engine, watches their files, and gathers what they find.
#pragma once

#include "headshare/compare/comparison.h"
#include "headshare/host/engine.h"
#include "headshare/host/lease.h"

namespace headshare {

// This is a cell that some process works on now.
struct RunningCell {
  size_t cell = 0;  // its place in the plan
  CellProgress progress;
};

// A GridObserver hears of a grid of cells and of those that run.
class GridObserver : public ComparisonObserver {
 public:
  void on_taken_over(size_t /*finished*/, size_t /*count*/) override {}
  void on_cell(const CellPlan&, int64_t /*number*/, int64_t /*count*/) override {}
  void on_failure(const CellPlan&, const std::string& /*reason*/) override {}
  void on_results(const Results&) override {}
  // Hears several times a second, at most, which cells run; `done` of the plan are finished or failed.
  virtual void on_progress(const std::vector<CellPlan>& /*plans*/, const std::vector<RunningCell>& /*running*/,
                           size_t /*done*/) {}
  // The process of a cell says this to people.
  virtual void on_note(const CellPlan& /*plan*/, const std::string& /*note*/) {}
};

struct Coordination {
  fs::path home;
  Gathering& gathering;
  Engine& engine;
  GridObserver& observer;
  std::function<bool()> stop_requested;
  LeaseTiming timing = lease_timing();
};

// Runs the open cells and returns when none is left. A cell that needs the weights of another one waits for it; one
// that another process works on is waited for; one whose machine failed is started again, a few times. Throws
// Interrupted when asked to stop, after all cells have saved their state; Error where a machine does not share the
// comparison's directory. Whatever it throws, no process of the engine is left.
void run_open_cells(const Coordination& with);

}  // namespace headshare
