// One line shows a whole comparison: which cell of how many, how its training goes, how long it all takes.
#pragma once

#include <set>
#include <string>

#include "headshare/cli/terminal/progress.h"
#include "headshare/host/process_host.h"

namespace headshare {

class GridProgress : public GridObserver {
 public:
  GridProgress() : line_("comparing") {}

  void on_taken_over(size_t finished, size_t count) override;
  void on_cell(const CellPlan& plan, int64_t number, int64_t count) override;
  void on_failure(const CellPlan& plan, const std::string& reason) override;

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;

  // Says a sentence once: it is not said again of another cell.
  void on_note(const std::string& note) override;

 private:
  std::string title() const;

  ProgressLine line_;
  CellKey key_;
  std::string unit_;  // the unit of the training speed
  int64_t number_ = 0;
  int64_t count_ = 0;
  double done_ = 0;  // cells
  std::set<std::string> said_;
};

}  // namespace headshare
