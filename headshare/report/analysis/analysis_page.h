// The page that `headshare analyze --html` writes: one file, without a network.
#pragma once

#include <string>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Of an analysis of at least one layer. The names in it are not trusted: every text is escaped.
std::string analysis_page(const HeadAnalysis& analysis);

}  // namespace headshare
