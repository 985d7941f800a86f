// One line for a whole comparison: which cell of how many, how its training goes, how long it all takes.
#pragma once

#include <set>
#include <string>

#include "headshare/cli/terminal/progress.h"
#include "headshare/compare/comparison.h"
#include "headshare/report/exports/report_files.h"

namespace headshare {

// Hears of the grid from run_comparison and of the running cell from its process. Whatever is found is
// written to `home` after every cell, so that an unfinished comparison can be looked at.
class GridProgress : public ComparisonObserver, public Observer {
 public:
  GridProgress(fs::path home, ReportFiles files) : home_(std::move(home)), files_(files), line_("comparing") {}

  void on_taken_over(size_t finished, size_t count) override;
  void on_cell(const CellPlan& plan, int64_t number, int64_t count) override;
  void on_failure(const CellPlan& plan, const std::string& reason) override;
  void on_results(const Results& results) override;

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;

  // What the process of a cell says; the same sentence of another cell is not said again.
  void on_note(const std::string& note);

  void finish() { line_.hide(); }

 private:
  std::string title() const;

  fs::path home_;
  ReportFiles files_;
  ProgressLine line_;
  CellKey key_;
  std::string unit_;  // of the training speed
  int64_t number_ = 0;
  int64_t count_ = 0;
  double done_ = 0;  // cells
  std::set<std::string> said_;
};

}  // namespace headshare
