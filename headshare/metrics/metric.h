// The metrics of a task by name: task tables list them, `measure` computes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/metrics/classification.h"
#include "headshare/metrics/score.h"

namespace headshare {

enum class Metric {
  kAccuracy,
  kF1,  // of class 1
  kMacroF1,
  kMatthews,
  kPearson,
  kSpearman,
  kGroupedExactMatch,  // MultiRC's EM
};

// What a model answered and what is right, paired by index. Classes or numbers, as the metric needs.
struct Outcomes {
  std::vector<int32_t> gold = {};
  std::vector<int32_t> predicted = {};
  std::vector<double> gold_numbers = {};
  std::vector<double> predicted_numbers = {};
  std::vector<ExampleGroup> groups = {};  // for kGroupedExactMatch
};

// One score a metric, in the order given. Throws Error as classification.h and correlation.h say.
std::vector<Score> measure(const std::vector<Metric>& metrics, const Outcomes& outcomes);

// The one number that stands for a task: the mean of its scores, as GLUE and SuperGLUE average them.
// Not a number when one of them is not. Requires at least one score.
double task_score(const std::vector<Score>& scores);

}  // namespace headshare
