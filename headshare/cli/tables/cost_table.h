// This table is what `cost` prints.
#pragma once

#include "headshare/models/cost.h"

namespace headshare {

// Returns a list with one object for each line.
std::string costs_json(const std::vector<SchemeCost>& costs, const CostOptions& options);

// Returns the assumptions behind the numbers, and the table, in `width` columns. `source` names the model that is asked
// about and its type, "config.json (llama)"; it is empty where the options describe the model.
std::string costs_text(const std::vector<SchemeCost>& costs, const CostOptions& options, const Sweep& sweep,
                       const std::string& source, int width);

}  // namespace headshare
