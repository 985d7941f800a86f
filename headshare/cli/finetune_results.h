// What `headshare finetune` found, as a table and as results.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headshare/train/rate_search.h"

namespace headshare {

// One task's models at the learning rate that was best; learning_rate() where there is one.
struct TaskResult {
  std::string task;
  RateSearch search;
  ClassCounts classes;
  std::vector<std::string> notes;
  int64_t examples = 0;

  const std::vector<TunedModel>& models() const { return search.models; }
  double learning_rate() const { return models().front().learning_rate; }
};

// The table of scores over the seeds; "" where no task has a model.
std::string results_text(std::vector<TaskResult> results);

// results.json: `model` is what was fine-tuned, `options` those of the call.
nlohmann::ordered_json results_object(const std::string& model, const std::vector<TaskResult>& results,
                                      const nlohmann::ordered_json& options);

}  // namespace headshare
