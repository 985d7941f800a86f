// These functions say what `headshare compare --plan DIR` planned, and how it is run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/compare/comparison_call.h"

namespace headshare {

// `out` is the directory of the whole comparison, which may be planned in stages.
std::string planned_text(const Planned& planned, const fs::path& out);

// Returns {"directory", "plan_id", "cells", "unfinished"}.
nlohmann::json planned_json(const Planned& planned);

}  // namespace headshare
