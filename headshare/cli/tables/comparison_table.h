// This header shows a comparison on a terminal: the result in words, three tables, footnotes.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

// Returns a text that fits 100 columns. The best scheme is marked with '*', and in bold where standard output is a
// terminal. Control characters that came out of a file are stripped.
std::string comparison_text(const Results& results);

// Returns the benchmarks among them side by side; "" where these are no table.
std::string benchmarks_text(const std::vector<Results>& all);

}  // namespace headshare
