#include "headshare/metrics/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

void check_values(std::span<const double> values) {
  HS_CHECK(!values.empty(), "a statistic needs at least one value, not 0");
  for (size_t i = 0; i < values.size(); ++i) {
    HS_CHECK(std::isfinite(values[i]), "value ", i + 1, " of ", values.size(), " is ", values[i],
             ": leave diverged runs out of the statistics and report them by name");
  }
}

void check_confidence(double confidence) {
  HS_CHECK(confidence > 0 && confidence < 1, "the confidence must lie between 0 and 1, not ", confidence);
}

void check_pairs(size_t first, size_t second) {
  HS_CHECK(first == second, "paired values need the same seeds on both sides: ", first, " values against ", second);
}

// Returns the t with P(|T| <= t) = confidence.
double student_t(double degrees_of_freedom, double confidence) {
  check_confidence(confidence);
  const boost::math::students_t distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
}

// Returns the degrees of freedom by which a list of n values among k lists is judged.
double judging_freedom(size_t n, size_t k) { return static_cast<double>((n - 1) * (k + 2)) / 3; }

double judging_p_value(double difference, double deviation, size_t n, size_t k) {
  if (deviation == 0) return difference == 0 ? 1.0 : 0.0;
  const double t = std::abs(difference) / (deviation / std::sqrt(static_cast<double>(n)));
  const boost::math::students_t distribution(judging_freedom(n, k));
  return std::min(1.0, 2 * static_cast<double>(k) * boost::math::cdf(boost::math::complement(distribution, t)));
}

// Returns sum (x - mean x)(y - mean y) / (n - 1).
double covariance(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean(x);
  const double mean_y = mean(y);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / static_cast<double>(x.size() - 1);
}

double quantile_of_sorted(std::span<const double> sorted, double probability) {
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

std::string interval_text(const Interval& interval, int digits, bool with_sign) {
  const auto number = [&](double value) {
    return with_sign ? format_signed(value, digits) : format_rounded(value, digits);
  };
  return "[" + number(interval.low) + ", " + number(interval.high) + "]";
}

double mean(std::span<const double> values) {
  check_values(values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  check_values(values);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return quantile_of_sorted(sorted, 0.5);
}

std::optional<double> sample_deviation(std::span<const double> values) {
  check_values(values);
  if (values.size() < 2) return std::nullopt;
  return std::sqrt(covariance(values, values));
}

Summary summarize(std::span<const double> values) {
  check_values(values);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {.count = static_cast<int64_t>(values.size()),
          .mean = mean(values),
          .deviation = sample_deviation(values),
          .median = median(values),
          .min = *min,
          .max = *max};
}

std::optional<Interval> mean_interval(std::span<const double> values, double confidence) {
  const std::optional<double> deviation = sample_deviation(values);
  if (!deviation) return std::nullopt;
  const double center = mean(values);
  const double half = student_t(static_cast<double>(values.size() - 1), confidence) * *deviation /
                      std::sqrt(static_cast<double>(values.size()));
  return Interval{center - half, center + half};
}

double judging_half_width(double deviation, size_t n, size_t k, double confidence) {
  const double each = 1 - (1 - confidence) / static_cast<double>(k);
  return student_t(judging_freedom(n, k), each) * deviation / std::sqrt(static_cast<double>(n));
}

std::vector<std::optional<JudgedDifference>> judge_differences(const std::vector<std::vector<double>>& lists,
                                                               double confidence) {
  size_t compared = 0;
  double squares = 0;
  double freedom = 0;
  for (const std::vector<double>& list : lists) {
    if (list.size() < kFewestToJudge) continue;
    ++compared;
    squares += covariance(list, list) * static_cast<double>(list.size() - 1);
    freedom += static_cast<double>(list.size() - 1);
  }
  std::vector<std::optional<JudgedDifference>> judged(lists.size());
  for (size_t i = 0; i < lists.size(); ++i) {
    const std::vector<double>& list = lists[i];
    if (list.size() < kFewestToJudge) continue;
    const double deviation = std::max(*sample_deviation(list), std::sqrt(squares / freedom));
    const double center = mean(list);
    const double half = judging_half_width(deviation, list.size(), compared, confidence);
    judged[i] = {.interval = {center - half, center + half},
                 .p_value = judging_p_value(center, deviation, list.size(), compared),
                 .deviation = deviation,
                 .compared = compared};
  }
  return judged;
}

double judging_confidence(size_t looks) { return 1 - (1 - kConfidence) * std::pow(0.5, static_cast<double>(looks)); }

std::optional<int64_t> values_needed(const JudgedDifference& difference, double half, int64_t most, double confidence) {
  for (auto n = static_cast<int64_t>(kFewestToJudge); n <= most; ++n) {
    const auto count = static_cast<size_t>(n);
    if (judging_half_width(difference.deviation, count, difference.compared, confidence) <= half) return n;
  }
  return std::nullopt;
}

std::optional<Interval> ratio_interval(std::span<const double> numerators, std::span<const double> denominators,
                                       double confidence) {
  check_pairs(numerators.size(), denominators.size());
  check_values(numerators);
  if (numerators.size() < 2) return std::nullopt;
  const double denominator = mean(denominators);
  const double ratio = mean(numerators) / denominator;
  const double t = student_t(static_cast<double>(numerators.size() - 1), confidence);
  const double c = t * t / static_cast<double>(numerators.size());

  // With d = numerator - ratio * denominator (mean 0) and r = ratio + x, Fieller's condition reads
  // x^2 b^2 <= c var(d - x * denominator): a quadratic in x without the cancellation of the one in r.
  std::vector<double> residuals(numerators.size());
  for (size_t i = 0; i < residuals.size(); ++i) residuals[i] = numerators[i] - ratio * denominators[i];
  const double leading = denominator * denominator - c * covariance(denominators, denominators);
  if (!(leading > 0)) return std::nullopt;
  const double linear = c * covariance(residuals, denominators);
  const double root = std::sqrt(linear * linear + leading * c * covariance(residuals, residuals));
  return Interval{ratio + (-linear - root) / leading, ratio + (-linear + root) / leading};
}

std::optional<Interval> bootstrap_interval(int64_t count, const Statistic& statistic, BootstrapOptions options) {
  check_confidence(options.confidence);
  HS_CHECK(options.resamples >= 1, "a bootstrap needs at least one resample, not ", options.resamples);
  if (count < 2) return std::nullopt;
  Philox random(stream_key(options.seed, "bootstrap"));
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::vector<double> statistics(static_cast<size_t>(options.resamples));
  for (double& value : statistics) {
    for (int64_t& index : indices) index = static_cast<int64_t>(random.below(static_cast<uint64_t>(count)));
    value = statistic(indices);
  }
  std::sort(statistics.begin(), statistics.end());
  const double tail = (1 - options.confidence) / 2;
  return Interval{quantile_of_sorted(statistics, tail), quantile_of_sorted(statistics, 1 - tail)};
}

}  // namespace headshare
