// A CellProcess runs one cell of a comparison in its own process: its peak memory is its own, and a crash costs one
// cell.
//
// The parent starts `PROGRAM train-cell DIR CELL` in a process group of its own, so that Ctrl-C reaches the parent
// alone, which asks the child to stop. The child writes one JSON object a line on its standard output (what an Observer
// hears) and messages for people on standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/host/runtime_options.h"
#include "headshare/train/observer.h"

namespace headshare {

struct CellProcess {
  fs::path program;
  std::vector<std::string> words;                   // the command line behind the program's name
  Observer* observer = nullptr;                     // hears of steps and evaluations
  std::function<void(const std::string&)> on_note;  // what the child says to people
  std::function<bool()> stop_requested;

  // Runs the cell and returns nothing when its process ended well, else a sentence that says how it ended. Throws
  // Interrupted when asked to stop, after the child has saved its state; Error when no process can be started.
  std::optional<std::string> run() const;
};

// The child reports through this observer, which writes those JSON objects, each with its line feed.
class ReportingObserver : public Observer {
 public:
  explicit ReportingObserver(std::function<void(const std::string& line)> write) : write_(std::move(write)) {}

  void on_step(const StepReport& report) override;
  void on_evaluation_progress(int64_t done, int64_t total) override;

 private:
  std::function<void(const std::string& line)> write_;
};

// Makes the system end this process when the one that started it ends, for whatever reason.
void die_with_parent();

// Does the work of `PROGRAM train-cell DIR CELL`: runs the cell that DIR/cells/CELL/plan.json describes. Throws as
// run_cell() does, and Error for a damaged plan.
void train_cell(const fs::path& home, const std::string& cell, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested);

}  // namespace headshare
