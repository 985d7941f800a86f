// Adds seeds until it is decided which cheaper schemes lose less than a margin.
#pragma once

#include <functional>

#include "headshare/compare/comparison_call.h"

namespace headshare {

// Extends the forecast `first`, of the first seeds, to the seeds that may be added.
Forecast with_added_seeds(Forecast first, const ComparisonOptions& options);

// Returns how many seeds to go on with, more than results.looks ends with; nothing where everything is decided, the
// most seeds that were asked for are trained, models failed, or no such question was asked.
std::optional<int64_t> seeds_to_go_on_with(const ComparisonOptions& options, const Results& results);

// Runs the cells of the first seeds, then cells of more seeds as long as the question of --until-decided is open.
// `plan` gives all cells for a number of seeds.
void run_until_decided(const ComparisonCall& call,
                       const std::function<std::vector<CellPlan>(const ComparisonOptions& options)>& plan,
                       ComparisonHost& host, Results* results);

}  // namespace headshare
