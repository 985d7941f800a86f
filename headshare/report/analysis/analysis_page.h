// Writes the page of `headshare analyze --html`: one file, without a network.
#pragma once

#include <string>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns the page of an analysis of at least one layer. The names in it are not trusted: every text is escaped.
std::string analysis_page(const HeadAnalysis& analysis);

}  // namespace headshare
