// These functions estimate how long a model of a comparison takes, from the start of its process to its cell.json.
#pragma once

#include <functional>

#include "headshare/compare/grid.h"

namespace headshare {

// A CellTime holds the parts of that time, in seconds.
struct CellTime {
  double start = 0;       // process, data and a fresh model
  double step = 0;        // of one step of training
  double evaluation = 0;  // of one evaluation of the validation part, and the checkpoint that follows
  double closing = 0;     // of the test part, memory and decoding
};

// Sums the time of the start, of all steps and evaluations and of the closing. `train` need not be resolved.
double whole_seconds(const CellTime& time, const TrainOptions& train);

// Measures a cell by a second or two of its work. `start` is the start time of any process with these data.
CellTime measure_cell(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device, double start);

// Estimates the seconds of all cells that are not finished below `home`; with "" of all cells. Calls `measure` once for
// each variant and setting, and only for the first one while the whole comparison is short.
double estimated_seconds(const std::vector<CellPlan>& plans, const fs::path& home,
                         const std::function<CellTime(const ComparisonOptions& cell)>& measure);

}  // namespace headshare
