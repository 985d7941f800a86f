#include "headshare/metrics/metric.h"

#include <stdexcept>

#include "headshare/metrics/classification.h"
#include "headshare/metrics/correlation.h"

namespace headshare {
namespace {

Score measure_one(Metric metric, const Outcomes& outcomes) {
  const ClassPairs classes{.gold = outcomes.gold, .predicted = outcomes.predicted};
  const NumberPairs numbers{.gold = outcomes.gold_numbers, .predicted = outcomes.predicted_numbers};
  switch (metric) {
    case Metric::kAccuracy:
      return accuracy(classes);
    case Metric::kF1:
      return f1(classes);
    case Metric::kMacroF1:
      return macro_f1(classes);
    case Metric::kMatthews:
      return matthews(classes);
    case Metric::kPearson:
      return pearson(numbers);
    case Metric::kSpearman:
      return spearman(numbers);
    case Metric::kGroupedExactMatch:
      return grouped_exact_match(classes, outcomes.groups);
  }
  throw std::logic_error("a metric without a case");
}

}  // namespace

std::vector<Score> measure(const std::vector<Metric>& metrics, const Outcomes& outcomes) {
  std::vector<Score> scores;
  scores.reserve(metrics.size());
  for (const Metric metric : metrics) scores.push_back(measure_one(metric, outcomes));
  return scores;
}

double task_score(const std::vector<Score>& scores) {
  double sum = 0;
  for (const Score& score : scores) sum += score.value;
  return sum / static_cast<double>(scores.size());
}

}  // namespace headshare
