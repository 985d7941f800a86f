// This table is what `headshare analyze` prints.
#pragma once

#include <string>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns the finding, a line for each layer, a line for each conversion, and what the numbers are.
std::string analysis_text(const HeadAnalysis& analysis);

}  // namespace headshare
