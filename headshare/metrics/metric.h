// Names the metrics of a task: task tables list them, `measure` computes them.
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

// These are a model's answers and the right ones, paired by index: classes or numbers, as the metric needs.
struct Outcomes {
  std::vector<int32_t> gold = {};
  std::vector<int32_t> predicted = {};
  std::vector<double> gold_numbers = {};
  std::vector<double> predicted_numbers = {};
  std::vector<ExampleGroup> groups = {};  // for kGroupedExactMatch
};

// Returns one score a metric, in the order given. Throws Error as classification.h and correlation.h say.
std::vector<Score> measure(const std::vector<Metric>& metrics, const Outcomes& outcomes);

// Returns the one number that stands for a task: the mean of its scores, as GLUE and SuperGLUE average them. It is not
// a number when one of them is not. Requires at least one score.
double task_score(const std::vector<Score>& scores);

}  // namespace headshare
