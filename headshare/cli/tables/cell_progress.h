// One line shows how the training of one cell of a comparison goes.
#pragma once

#include <string>

#include "headshare/cli/terminal/progress.h"
#include "headshare/train/observer.h"

namespace headshare {

class CellProgressLine : public Observer {
 public:
  explicit CellProgressLine(const std::string& index) : line_("cell " + index) {}

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;

 private:
  ProgressLine line_;
  StepReport last_;
};

}  // namespace headshare
