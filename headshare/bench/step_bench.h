// This benchmark times whole training steps of a decoder: the forward and the backward pass and AdamW, on tokens that
// lie on the device already.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/bench/attention_grid.h"
#include "headshare/bench/roof.h"
#include "headshare/bench/timing.h"

namespace headshare {

struct StepCase {
  std::string scheme = "mha";
  int64_t layers = 6;
  int64_t heads = 12;          // H
  int64_t head_width = 64;     // D; the model is H D wide
  int64_t vocabulary = 50257;  // V
  int64_t batch = 4;           // B
  int64_t length = 512;        // T
  Precision precision = Precision::kFp32;
  c10::Device device = c10::Device(c10::kCPU);
};

// Returns "mha step L6 H12 T512 D64 V50257 B4": what differs between the cases of one run.
std::string case_name(const StepCase& one);

// These options of a model say what the grid of attention does not.
struct StepGrid {
  int64_t layers = 6;
  int64_t vocabulary = 50257;
};

Fields fields(StepGrid& grid);

// Lists the models of the grid, schemes innermost; masks, dropout, passes and queries of `attention` do not count.
// Throws Error on names that do not exist.
std::vector<StepCase> step_cases_of(const AttentionGrid& attention, const StepGrid& grid);

// Counts the floating-point operations of a step's products: six for each token and each weight of a matrix, and those
// of operations_of() for the heads of each layer. Recomputation does not count.
double operations_of(const StepCase& one);

struct StepRow {
  StepCase of;
  std::string refused = {};  // why it was not timed; empty when it was
  Timing timing = {};        // zeros when refused
  double tokens_per_second = 0;
  int64_t parameters = 0;
  Rate rate = {};                          // operations_of() beside a matrix product
  std::optional<int64_t> peak_bytes = {};  // of one step, above what the process had on the device before
};

struct StepBenchOptions {
  TurnOptions turns;
  bool small_roofs = false;  // RoofOptions::small
};

// This is what a model finds of one sequence: its mean loss, and the length of the gradient.
struct Lesson {
  double loss = 0, gradient_norm = 0;
};

// Returns why a step that finds this is wrong, where the same model in double precision finds `exact`; "" where it is
// right.
std::string why_wrong(const Lesson& found, const Lesson& exact, Precision precision);

// Times the cases of one group, which take turns with each other and with their roofs; they are on one device. A step
// is refused whose loss or gradient norm is not that of the same model in double precision.
std::vector<StepRow> bench_steps(const std::vector<StepCase>& group, const StepBenchOptions& options);

}  // namespace headshare
