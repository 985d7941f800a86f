// What the options of a comparison mean together.
#pragma once

#include "headshare/compare/options.h"

namespace headshare {

// Throws Error for options that exclude each other, that the task does not have, or with which nothing can be trained,
// before any data is read.
void check_comparison(const ComparisonOptions& options);

}  // namespace headshare
