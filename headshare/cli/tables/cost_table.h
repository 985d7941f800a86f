// What `cost` prints.
#pragma once

#include "headshare/cli/verbs/cost_model.h"

namespace headshare {

// A list with one object for each line.
std::string costs_json(const std::vector<Cost>& costs, const CostOptions& options);

// What the numbers stand on, and the table, in `width` columns.
std::string costs_text(const std::vector<Cost>& costs, const CostOptions& options, const Sweep& sweep, int width);

}  // namespace headshare
