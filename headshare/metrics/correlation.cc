#include "headshare/metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/metrics/statistics.h"

namespace headshare {
namespace {

void check_pairs(const char* score, const NumberPairs& pairs) {
  HS_CHECK(pairs.gold.size() == pairs.predicted.size(), score,
           " compares every prediction with its gold number: ", pairs.predicted.size(), " predictions for ",
           pairs.gold.size(), " examples");
  HS_CHECK(pairs.gold.size() >= 2, score, " needs at least 2 examples, not ", pairs.gold.size());
  for (const auto& numbers : {pairs.gold, pairs.predicted}) {
    const auto bad = std::find_if_not(numbers.begin(), numbers.end(), [](double one) { return std::isfinite(one); });
    HS_CHECK(bad == numbers.end(), score, ": example ", bad - numbers.begin(), " has the number ", *bad,
             ", which is not finite");
  }
}

bool all_same(std::span<const double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double one) { return one == numbers[0]; });
}

// Returns the differences from the mean, divided by their length: no sum of squares overflows.
std::vector<double> normalised(std::span<const double> numbers) {
  std::vector<double> result(numbers.begin(), numbers.end());
  const double middle = mean(numbers);
  double largest = 0;
  for (double& one : result) {
    one -= middle;
    largest = std::max(largest, std::abs(one));
  }
  double sum = 0;
  for (double& one : result) {
    one /= largest;
    sum += one * one;
  }
  for (double& one : result) one /= std::sqrt(sum);
  return result;
}

std::vector<double> ranks(std::span<const double> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> result(numbers.size());
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && numbers[order[end]] == numbers[order[first]]) ++end;
    const double shared = static_cast<double>(first + 1 + end) / 2;  // mean of first + 1 .. end
    for (size_t i = first; i < end; ++i) result[order[i]] = shared;
  }
  return result;
}

Score correlation(const char* name, const NumberPairs& pairs) {
  Score score{.name = name,
              .value = std::numeric_limits<double>::quiet_NaN(),
              .signature = join_text(name, "|examples:", pairs.gold.size())};
  if (all_same(pairs.gold) || all_same(pairs.predicted)) {
    score.note = join_text("all ", all_same(pairs.gold) ? "gold" : "predicted",
                           " numbers are the same: the correlation is not defined");
    return score;
  }
  const std::vector<double> gold = normalised(pairs.gold);
  const std::vector<double> predicted = normalised(pairs.predicted);
  const double product = std::inner_product(gold.begin(), gold.end(), predicted.begin(), 0.0);
  score.value = std::clamp(product, -1.0, 1.0);
  return score;
}

}  // namespace

Score pearson(const NumberPairs& pairs) {
  check_pairs("pearson", pairs);
  return correlation("pearson", pairs);
}

Score spearman(const NumberPairs& pairs) {
  check_pairs("spearman", pairs);
  const std::vector<double> gold = ranks(pairs.gold);
  const std::vector<double> predicted = ranks(pairs.predicted);
  return correlation("spearman", {.gold = gold, .predicted = predicted});
}

}  // namespace headshare
