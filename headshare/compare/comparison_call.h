// A ComparisonCall runs a comparison, and a ComparisonHost gives it what it needs of the program around it.
#pragma once

#include <functional>

#include "headshare/base/files/file.h"
#include "headshare/compare/grid.h"
#include "headshare/report/results/results.h"

namespace headshare {

// A Forecast says what a comparison would take: its data is read and speeds are measured, and nothing is written into
// its directory.
struct Forecast {
  std::string data;    // "book.txt: 90k + 5k + 5k tokens ..."
  size_t models = 0;   // models that are trained, with those of all seeds that may be added
  double seconds = 0;  // time of all models that are not finished
  size_t at_once = 1;  // so many models are trained at a time
};

struct ComparisonCall {
  fs::path out;               // the comparison's directory
  bool resume = false;        // goes on with the comparison in `out`
  bool overwrite = false;     // forgets an earlier comparison first
  bool beyond_a_day = false;  // starts even if the estimate is longer than a day
  bool adds = false;          // adds schemes, variants or seeds to what an earlier call began
  bool latex = false;         // writes the table in LaTeX, too
  size_t at_once = 1;         // so many cells run at a time
  Forecast forecast = {};     // compare() fills it in
  std::string line;           // the command line as the user typed it
  ComparisonOptions options;
};

// A host that only plans throws this when the plan of the cells that come next is written: what comes after them
// depends on what they find. Nothing failed.
struct Planned {
  fs::path home;                   // the comparison that they belong to, which may be that of the encoders
  std::string id;                  // of the plan
  size_t cells = 0;                // in the plan
  std::vector<size_t> unfinished;  // the numbers of those that are to be run
};

class ComparisonHost {
 public:
  virtual ~ComparisonHost() = default;

  // Sets threads and memory and returns the device to compute on. Throws Error when there is no such device.
  virtual c10::Device start() = 0;

  // Returns the seconds from the start of a process of this program until it can open the data.
  virtual double start_seconds() = 0;

  // Describes the machine and the libraries for readers of the results.
  virtual nlohmann::ordered_json environment() = 0;

  // Throws Interrupted once the user asked to stop.
  virtual void check_interrupted() = 0;

  // Calls `read` with a function that shows how far the reading is.
  virtual void show_reading(const std::function<void(const Progress& progress)>& read) = 0;

  // Returns the call that began the comparison in `home`, with its options.
  virtual ComparisonCall begun(const fs::path& home) = 0;

  // Writes down the options that repeat this call or go on with it, where begun() finds them.
  virtual void write_resolved(const ComparisonCall& call) = 0;

  // Runs the cells that are not finished, gathers what they find, and shows how far they are. Throws Interrupted once
  // the user asked to stop, and Planned where the host only plans and there are such cells.
  virtual void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) = 0;
};

}  // namespace headshare
