// What `headshare analyze` prints.
#pragma once

#include <string>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// The finding, a line for each layer, a line for each conversion, what the numbers are.
std::string analysis_text(const HeadAnalysis& analysis);

}  // namespace headshare
