// Adds seeds until it is decided which cheaper schemes lose less than a margin.
#pragma once

#include <functional>

#include "headshare/compare/comparison_call.h"

namespace headshare {

// `first`, of the first seeds, with the seeds that may be added.
Forecast with_added_seeds(Forecast first, const ComparisonOptions& options);

// How many seeds to go on with, more than results.looks ends with; nothing where everything is decided, the most seeds
// that were asked for are trained, models failed, or no such question was asked.
std::optional<int64_t> seeds_to_go_on_with(const ComparisonOptions& options, const Results& results);

// Runs the cells of the first seeds, and as long as the question of --until-decided is open those of more. `plan` gives
// all cells for a number of seeds.
void run_until_decided(const ComparisonCall& call,
                       const std::function<std::vector<CellPlan>(const ComparisonOptions& options)>& plan,
                       ComparisonHost& host, Results* results);

}  // namespace headshare
