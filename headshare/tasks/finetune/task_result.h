// A TaskResult is what a grid of fine-tuned models found on one task; results.json holds those of several tasks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/tasks/finetune/rate_search.h"

namespace headshare {

// It holds one task's models at the learning rate that was best, learning_rate() where there is one.
struct TaskResult {
  std::string task;
  RateSearch search;
  ClassCounts classes;
  std::vector<std::string> notes;
  int64_t examples = 0;

  const std::vector<FineTunedModel>& models() const { return search.models; }
  double learning_rate() const { return models().front().learning_rate; }

  // Returns score `score` of part `part` of every model.
  std::vector<double> values(size_t part, size_t score) const;
};

// Tells whether every seed has a number: 0/0 is none.
bool all_finite(const std::vector<double>& values);

// Returns what results.json holds: `model` is what was fine-tuned, `options` those of the call.
nlohmann::ordered_json results_object(const std::string& model, const std::vector<TaskResult>& results,
                                      const nlohmann::ordered_json& options);

}  // namespace headshare
