// What `headshare finetune` found, as a table and as results.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headshare/train/fine_tuning.h"

namespace headshare {

// One task's models at the learning rate that was best.
struct TaskResult {
  std::string task;
  double learning_rate = 0;
  std::vector<TunedModel> models;                // a seed each
  std::vector<std::pair<double, double>> rates;  // of every rate tried: the mean validation goal
  ClassCounts classes;
  std::vector<std::string> notes;
  int64_t examples = 0;
  std::vector<std::string> failures;  // of learning rates; without a model they are all there is
};

// The table of scores over the seeds; "" where no task has a model.
std::string results_text(std::vector<TaskResult> results);

// results.json: `model` is what was fine-tuned, `options` those of the call.
nlohmann::ordered_json results_object(const std::string& model, const std::vector<TaskResult>& results,
                                      const nlohmann::ordered_json& options);

}  // namespace headshare
