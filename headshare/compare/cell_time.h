// How long a model of a comparison takes from the start of its process to its cell.json.
#pragma once

#include <functional>

#include "headshare/compare/grid.h"

namespace headshare {

// The parts of it, in seconds.
struct CellTime {
  double start = 0;       // process, data and a fresh model
  double step = 0;        // of training
  double evaluation = 0;  // of the validation part, and the checkpoint that follows
  double closing = 0;     // the test part, memory and decoding
};

// Of all steps and evaluations. `train` need not be resolved.
double whole_seconds(const CellTime& time, const TrainOptions& train);

// Measures a cell with a second or two of its work. `start` is that of any process with these data.
CellTime measure_cell(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device, double start);

// The seconds of all cells that are not finished below `home`; "": of all. `measure` is asked once for each variant and
// setting, and only for the first while the whole is short.
double estimated_seconds(const std::vector<CellPlan>& plans, const fs::path& home,
                         const std::function<CellTime(const ComparisonOptions& cell)>& measure);

}  // namespace headshare
