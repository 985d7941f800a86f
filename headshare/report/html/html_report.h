// Writes report.html: one file that says what a comparison found, to whoever opens it, without a network.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

// Returns a page with a section for each of the results. Nothing in them is trusted: every text is escaped, and the
// page's content security policy lets no script but its own run and no address be loaded.
std::string html_report(const std::vector<Results>& all);

}  // namespace headshare
