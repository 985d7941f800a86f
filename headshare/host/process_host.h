// A program runs a comparison in this host: processes for the cells, resolved.yaml, and a way to stop.
#pragma once

#include <memory>
#include <set>

#include "headshare/host/compare_command.h"
#include "headshare/host/coordinator.h"
#include "headshare/host/plan_file.h"

namespace headshare {

struct HostOptions {
  // This is a headshare program: called with the words of cell_words() (engine.h) it does what run_planned_cell() does
  // and returns the codes of `headshare cell`, and called with `--version` it ends at once.
  fs::path program;
  std::function<bool()> stop_requested = [] { return false; };  // asked several times a second
};

// A ProcessHost shows nothing; programs that show something override observer() and show_reading().
class ProcessHost : public ComparisonHost {
 public:
  // Throws Error where the options name no program.
  ProcessHost(HostOptions options, const CompareCommand& command);

  c10::Device start() override;
  double start_seconds() override;
  nlohmann::ordered_json environment() override;
  void check_interrupted() override;
  void show_reading(const std::function<void(const Progress& progress)>& read) override;
  ComparisonCall begun(const fs::path& home) override;
  void write_resolved(const ComparisonCall& call) override;
  // Writes the plan of the cells, and runs them with the engine of --workers. After every cell it writes the reports,
  // so that an unfinished comparison can be looked at.
  void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) override;

 protected:
  // Makes the observer of one grid.
  virtual std::unique_ptr<GridObserver> observer() { return std::make_unique<GridObserver>(); }

 private:
  RuntimeOptions runtime() const;
  EngineCall engine_call(const ComparisonCall& call, const PlanFile& plan, size_t open) const;

  HostOptions options_;
  CompareCommand command_;
  std::set<fs::path> planned_;  // the comparisons whose plans this call wrote
};

}  // namespace headshare
