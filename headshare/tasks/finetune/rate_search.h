// A search trains the grid of learning rates and seeds of one task, for `finetune` and for a cell of a comparison
// alike.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "headshare/tasks/finetune/fine_tuning.h"

namespace headshare {

struct RateSearch {
  std::vector<FineTunedModel> models = {};            // of the best rate, one a seed; none where every rate diverged
  std::vector<std::pair<double, double>> goals = {};  // of every rate that did not diverge: the mean validation goal
  std::vector<std::string> failures = {};             // of the other rates, one each
};

// Trains a model for every rate and seed and keeps those of the rate with the best mean validation goal, the first
// among equals. `train` may throw Diverged, which ends its rate: `failed` then makes the sentence for it. Whatever else
// it throws ends the search.
RateSearch search_rates(const std::vector<double>& rates, const std::vector<int64_t>& seeds,
                        const std::function<FineTunedModel(double rate, int64_t seed)>& train,
                        const std::function<std::string(double rate, const Diverged& reason)>& failed);

}  // namespace headshare
