// This table is what `cost --workers` prints below that of the schemes.
#pragma once

#include "headshare/models/cost.h"

namespace headshare {

// Returns the assumptions and a row for every scheme and number of workers, in `width` columns.
std::string workers_text(const std::vector<SchemeCost>& costs, const DataParallelOptions& options, int width);

// Adds what a number of workers costs to the object of one scheme.
void add_workers(const SchemeCost& cost, const DataParallelOptions& options, nlohmann::ordered_json* to);

}  // namespace headshare
