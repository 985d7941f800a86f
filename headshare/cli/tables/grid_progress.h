// One line shows a whole comparison: which cells of how many run, how their training goes, how long it all takes.
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
  void on_progress(const std::vector<CellPlan>& plans, const std::vector<RunningCell>& running, size_t done) override;

  // Says a sentence once: it is not said again of another cell.
  void on_note(const CellPlan& plan, const std::string& note) override;

 private:
  std::string title(const CellPlan& plan) const;

  ProgressLine line_;
  std::map<std::string, int64_t> numbers_;  // of the cells, by folder
  int64_t count_ = 0;
  std::set<std::string> said_;
};

// Returns "2/8 mha seed 1  loss 3.2012  41k tokens/s" for one cell that runs; for several how far each is, and the
// speed of all.
std::string running_text(const std::vector<CellPlan>& plans, const std::vector<RunningCell>& running);

}  // namespace headshare
