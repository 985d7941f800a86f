// Decides which cheaper variants lose less than the margin (non-inferiority), and how many seeds would tell.
#pragma once

#include <optional>
#include <vector>

#include "headshare/report/statistics/verdicts.h"

namespace headshare {

// These are the judged variants with fewer attention parameters than the reference: the schemes were invented to save
// these.
struct Decision {
  Rows kept = {};       // whole interval within the margin: they lose less
  Rows lost = {};       // whole interval beyond it: they lose more
  Rows undecided = {};  // the rest
};
Decision decide(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& reference);

// Returns the variants whose quality the headline calls undecided: too few seeds judge them, or they are not
// significantly different from the reference and may lose the margin, or the interval of a cheaper one holds the
// margin.
Rows undecided_rows(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& reference);

// Tells whether the means of all finished variants may be ordered into a Pareto frontier: the reference is there and no
// other one is undecided.
bool means_are_decided(const Results& results, const std::vector<VariantRow>& rows);

// Returns how many seeds would decide every undecided row if means and deviations stay as they are, after so many more
// looks at the data than Results::looks has; nothing where `most` would not do.
std::optional<int64_t> seeds_to_decide(const Results& results, const VariantRow& reference, const Rows& undecided,
                                       int64_t most, size_t more_looks = 0);

}  // namespace headshare
