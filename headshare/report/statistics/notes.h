// Writes the sentences below a comparison's tables. All is plain text: whoever puts it into HTML or LaTeX escapes it.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

// Returns what has to stand below every table: what the figures are of, tests and rules by name, why a value is
// missing.
std::vector<std::string> footnotes(const Results& results, const std::vector<VariantRow>& rows);

// Returns each failed cell with its reason.
std::vector<std::string> failure_notes(const Results& results);

}  // namespace headshare
