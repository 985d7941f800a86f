// Correlates predicted with gold numbers, equal to SciPy's functions.
#pragma once

#include <span>

#include "headshare/metrics/score.h"

namespace headshare {

// These are the gold and the predicted number of each example, paired by index.
struct NumberPairs {
  std::span<const double> gold;
  std::span<const double> predicted;
};

// Both functions throw Error when the two lists differ in length, for fewer than two examples and for numbers that are
// not finite. They return not a number, with a note, when all gold or all predicted numbers are the same: the
// correlation is 0/0 then (scipy.stats gives nan, too).

// Returns Pearson's correlation: that of the numbers.
Score pearson(const NumberPairs& pairs);

// Returns Spearman's correlation: that of their ranks; equal numbers share the mean of their ranks.
Score spearman(const NumberPairs& pairs);

}  // namespace headshare
