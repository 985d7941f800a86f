#include "headshare/tasks/finetune/rate_search.h"

#include <limits>

namespace headshare {

RateSearch search_rates(const std::vector<double>& rates, const std::vector<int64_t>& seeds,
                        const std::function<FineTunedModel(double rate, int64_t seed)>& train,
                        const std::function<std::string(double rate, const Diverged& reason)>& failed) {
  RateSearch search;
  double best = -std::numeric_limits<double>::infinity();
  for (const double rate : rates) {
    std::vector<FineTunedModel> models;
    try {
      for (const int64_t seed : seeds) models.push_back(train(rate, seed));
    } catch (const Diverged& reason) {
      search.failures.push_back(failed(rate, reason));
      continue;
    }
    double goal = 0;
    for (const FineTunedModel& model : models) goal += model.validation_goal() / static_cast<double>(models.size());
    search.goals.emplace_back(rate, goal);
    if (goal <= best && !search.models.empty()) continue;
    best = goal;
    search.models = std::move(models);
  }
  return search;
}

}  // namespace headshare
