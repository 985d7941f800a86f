// A call that runs a comparison, and what it needs of the program around it.
#pragma once

#include <functional>

#include "headshare/base/file.h"
#include "headshare/compare/grid.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct ComparisonCall {
  fs::path out;               // the comparison's directory
  bool resume = false;        // goes on with the comparison in `out`
  bool overwrite = false;     // forgets it first
  bool beyond_a_day = false;  // starts even what is estimated to take longer
  bool adds = false;          // schemes, variants or seeds to what an earlier call began
  bool latex = false;         // writes the table in LaTeX, too
  std::string line;           // as the user typed it
  ComparisonOptions options;
};

// What a comparison would take: its data is read and speeds are measured, and nothing is written into its directory.
struct Forecast {
  std::string data;    // "book.txt: 90k + 5k + 5k tokens ..."
  size_t models = 0;   // that are trained, those of all seeds that may be added included
  double seconds = 0;  // for all of them that are not finished
};

class ComparisonHost {
 public:
  virtual ~ComparisonHost() = default;

  // Begins to compute: threads and memory are set. Throws Error when there is no such device.
  virtual c10::Device start() = 0;

  // How long a process of this program takes until it can open the data.
  virtual double start_seconds() = 0;

  // The machine and the libraries, for readers of the results.
  virtual nlohmann::ordered_json environment() = 0;

  // Throws Interrupted once the user asked to stop.
  virtual void check_interrupted() = 0;

  // Calls `read` with what shows how far it is.
  virtual void show_reading(const std::function<void(const Progress& progress)>& read) = 0;

  // The call that began the comparison in `home`, with its options.
  virtual ComparisonCall begun(const fs::path& home) = 0;

  // Writes down what repeats this call or goes on with it, where begun() finds it.
  virtual void write_resolved(const ComparisonCall& call) = 0;

  // Runs the cells that are not finished, as run_comparison() does, and shows how far they are.
  virtual void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) = 0;
};

}  // namespace headshare
