// Correlation of predicted with gold numbers, equal to SciPy's.
#pragma once

#include <span>

#include "headshare/metrics/score.h"

namespace headshare {

// Gold and predicted number of each example, paired by index.
struct NumberPairs {
  std::span<const double> gold;
  std::span<const double> predicted;
};

// Both throw Error when the two differ in length, for fewer than two examples and for numbers that
// are not finite. Not a number, with a note, when all gold or all predicted numbers are the same:
// the correlation is 0/0 then (scipy.stats gives nan, too).

// Pearson's: of the numbers.
Score pearson(const NumberPairs& pairs);

// Spearman's: of their ranks; equal numbers share the mean of their ranks.
Score spearman(const NumberPairs& pairs);

}  // namespace headshare
