// A comparison opens its experiment and makes the trials of its cells from it.
#pragma once

#include "headshare/compare/options.h"

namespace headshare {

// Reads the data of the task. Throws Error when it has no validation part, which chooses each model's best checkpoint.
std::unique_ptr<Experiment> open_experiment(const ComparisonOptions& options, const Progress& progress = {});

// Makes the model with initial values of cell.train.seed, and its data.
Trial open_trial(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device);

}  // namespace headshare
