// The options of a comparison must make sense together, which these functions check.
#pragma once

#include "headshare/base/options/idle_option.h"
#include "headshare/compare/options.h"

namespace headshare {

// Throws Error for options that exclude each other, that the task does not have, or with which nothing can be trained,
// before any data is read.
void check_comparison(const ComparisonOptions& options);

// Lists options that change nothing for any of the models, among options that check_comparison() takes: a variant or a
// setting of the sweep may be the only one that reads an option.
IdleOptions idle_options(const ComparisonOptions& options);

}  // namespace headshare
