// Computes statistics of a few repeated measurements (one number per seed).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headshare {

struct Interval {
  double low = 0;
  double high = 0;
};

// Returns "[0.01, 0.03]", or "[+0.01, +0.03]".
std::string interval_text(const Interval& interval, int digits, bool with_sign = false);

constexpr double kConfidence = 0.95;

// A paired test of n pairs that assumes nothing of the distribution (all sign flips) cannot report
// a two-sided p below 2 / 2^n: 0.06 for five pairs. Below six, a p-value under 0.05 would rest on
// the normal assumption alone, so none is given.
constexpr int64_t kFewestPairsForPValue = 6;

// Everything below throws Error when there is no value, or one that is not finite.

double mean(std::span<const double> values);
double median(std::span<const double> values);  // mean of the two middle values for an even count

// Returns sqrt(sum (x - mean)^2 / (n - 1)); nothing for fewer than two values.
std::optional<double> sample_deviation(std::span<const double> values);

struct Summary {
  int64_t count = 0;
  double mean = 0;
  std::optional<double> deviation;
  double median = 0;
  double min = 0;
  double max = 0;
};

Summary summarize(std::span<const double> values);

// Returns mean +- t * deviation / sqrt(n), Student's t with n - 1 degrees of freedom; nothing for fewer than two
// values. `confidence` is in (0, 1).
std::optional<Interval> mean_interval(std::span<const double> values, double confidence = kConfidence);

// A mean difference is judged from so many values on: two may agree by luck.
constexpr size_t kFewestToJudge = 3;

// This is one of several differences to the same reference.
struct JudgedDifference {
  Interval interval;
  double p_value = 1;    // two-sided; below 1 - confidence exactly where the interval does not contain 0
  double deviation = 0;  // that the interval rests on
  size_t compared = 1;   // differences that the correction is for: k below
};

// Returns the mean of each list (differences to one reference, a list for each variant) with intervals that hold all at
// once with `confidence`; nothing for a list of fewer than kFewestToJudge values. With k lists that are judged, n
// values in this one, s_i its deviation and s the deviation pooled over the lists, the half width is
//
//   t(df = (n - 1)(k + 2) / 3, 1 - (1 - confidence) / (2 k)) * max(s_i, s) / sqrt(n)
//
// Bonferroni's correction is for k. A deviation of three values is a poor estimate, hence the pooled one, and never
// less than it. The degrees of freedom are between those of one list and of k independent ones, because the lists share
// their reference and may scatter differently. With one list it is Student's paired t-test. How often an interval errs,
// and what it sees: studies/simulate_intervals.py and docs/design/025-judging-differences.md.
std::vector<std::optional<JudgedDifference>> judge_differences(const std::vector<std::vector<double>>& lists,
                                                               double confidence = kConfidence);

// Returns half the width of the interval of one of k such means of n values, at least kFewestToJudge, whose interval
// rests on `deviation`.
double judging_half_width(double deviation, size_t n, size_t k, double confidence = kConfidence);

// Returns the confidence of the judgement after so many looks at growing data, so that all looks together err in at
// most 1 - kConfidence of the cases, however many there will be: look number l may spend (1 - kConfidence) / 2^l.
// Without a look the amount of data was fixed beforehand, and there is one judgement, with kConfidence.
double judging_confidence(size_t looks);

// Returns how many values each list would need so that an interval like this one is no wider than `half` to either
// side; nothing where more than `most` would not do.
std::optional<int64_t> values_needed(const JudgedDifference& difference, double half, int64_t most,
                                     double confidence = kConfidence);

// Returns mean(numerators) / mean(denominators) with Fieller's interval (1954): all r for which a paired t-test does
// not reject mean(numerator - r * denominator) = 0. It is exact for normal pairs of any correlation and any count >= 2,
// where the delta method and the bootstrap are too narrow for a handful of seeds. Returns nothing for fewer than two
// pairs, and nothing when the denominators' own interval contains 0: the set is then unbounded.
std::optional<Interval> ratio_interval(std::span<const double> numerators, std::span<const double> denominators,
                                       double confidence = kConfidence);

struct BootstrapOptions {
  double confidence = kConfidence;
  int64_t resamples = 1000;
  uint64_t seed = 0;
};

// Computes a statistic of the chosen examples: indices into the caller's data, repeats included.
using Statistic = std::function<double(std::span<const int64_t> indices)>;

// Returns Efron's percentile interval: `count` examples are drawn with replacement `resamples` times, and the interval
// runs between the quantiles (1 -+ confidence) / 2 of the statistic (linear between order statistics, as
// numpy.quantile). It is for many examples (sentences of a test set); for a handful of seeds it is too narrow: use
// mean_interval. Returns nothing for fewer than two examples. The same seed gives the same interval.
std::optional<Interval> bootstrap_interval(int64_t count, const Statistic& statistic, BootstrapOptions options = {});

}  // namespace headshare
