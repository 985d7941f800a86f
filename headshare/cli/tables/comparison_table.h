// A comparison on a terminal: what came out in words, three tables, footnotes.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

// Fits 100 columns. The best scheme is marked with '*', and in bold where standard output is a terminal.
// What came out of a file is stripped of control characters.
std::string comparison_text(const Results& results);

// The benchmarks among them side by side; "" where these are no table.
std::string benchmarks_text(const std::vector<Results>& all);

}  // namespace headshare
