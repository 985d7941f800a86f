// Writes an analysis as JSON: the schema of `headshare analyze --json`, described in docs/results-format.md.
#pragma once

#include <nlohmann/json.hpp>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

nlohmann::ordered_json to_json(const HeadAnalysis& analysis);

}  // namespace headshare
