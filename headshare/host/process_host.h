// A program runs a comparison in this host: a process for each cell, resolved.yaml, and a way to stop.
#pragma once

#include <memory>

#include "headshare/compare/comparison.h"
#include "headshare/host/compare_command.h"
#include "headshare/train/observer.h"

namespace headshare {

// A GridObserver hears of a grid of cells and of the cell that runs.
class GridObserver : public ComparisonObserver, public Observer {
 public:
  void on_taken_over(size_t /*finished*/, size_t /*count*/) override {}
  void on_cell(const CellPlan&, int64_t /*number*/, int64_t /*count*/) override {}
  void on_failure(const CellPlan&, const std::string& /*reason*/) override {}
  void on_results(const Results&) override {}
  // The process of a cell says this to people.
  virtual void on_note(const std::string& /*note*/) {}
};

struct HostOptions {
  // This is a headshare program: called with the words `train-cell DIR CELL` and those of RuntimeOptions it does what
  // train_cell() does, and called with `--version` it ends at once.
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
  // After every cell it writes the reports, so that an unfinished comparison can be looked at.
  void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) override;

 protected:
  // Makes the observer of one grid.
  virtual std::unique_ptr<GridObserver> observer() { return std::make_unique<GridObserver>(); }

 private:
  HostOptions options_;
  CompareCommand command_;
};

}  // namespace headshare
