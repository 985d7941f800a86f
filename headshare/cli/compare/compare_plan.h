// A plan is what `headshare compare --dry-run` prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/host/compare_command.h"

namespace headshare {

// Lists the sizes of all models; where the data can be read, also what it is and how long the whole takes.
std::string plan_text(const CompareCommand& command);

// Returns the plan of --json: {"data", "models", "seconds", "threads"}, which models are trained and how long all of
// them take. Throws UsageError where the data cannot be read.
nlohmann::json plan_json(const CompareCommand& command);

}  // namespace headshare
