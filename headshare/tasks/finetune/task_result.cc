#include "headshare/tasks/finetune/task_result.h"

#include <algorithm>
#include <cmath>

#include "headshare/metrics/statistics.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

// Returns the goals of one part, for all seeds.
std::vector<double> goals(const std::vector<FineTunedModel>& models, size_t part) {
  std::vector<double> values;
  for (const FineTunedModel& model : models) values.push_back(model.parts.at(part).goal);
  return values;
}

Json summary(const std::vector<double>& values) {
  Json object = {{"values", values}};
  if (!all_finite(values)) return object;
  const Summary found = summarize(values);
  object["mean"] = found.mean;
  object["deviation"] = found.deviation ? Json(*found.deviation) : Json();
  object["median"] = found.median;
  object["best"] = found.max;
  return object;
}

Json to_object(const TaskResult& result) {
  if (result.models().empty()) return Json{{"task", result.task}, {"failures", result.search.failures}};
  Json object = {{"task", result.task}, {"learning_rate", result.learning_rate()}, {"train_examples", result.examples}};
  for (const auto& [name, count] : result.classes) object["classes"].push_back({{"label", name}, {"examples", count}});
  for (const auto& [rate, goal] : result.search.goals) {
    object["learning_rates"].push_back({{"learning_rate", rate}, {"validation_goal", goal}});
  }
  const auto& parts = result.models().front().parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    Json part = {
        {"part", parts[i].part}, {"examples", parts[i].examples}, {"goal", summary(goals(result.models(), i))}};
    for (size_t k = 0; k < parts[i].scores.size(); ++k) {
      Json score = {{"name", parts[i].scores[k].name}, {"signature", parts[i].scores[k].signature}};
      score.update(summary(result.values(i, k)));
      part["scores"].push_back(std::move(score));
    }
    object["parts"].push_back(std::move(part));
  }
  object["notes"] = result.notes;
  if (!result.search.failures.empty()) object["failures"] = result.search.failures;
  for (const FineTunedModel& model : result.models()) object["models"].push_back(to_json(model));
  return object;
}

// Adds the mean over a suite's tasks, of each seed; it names the tasks, which need not be all.
void add_averages(const std::vector<TaskResult>& results, Json* object) {
  for (const Suite suite : {Suite::kGlue, Suite::kSuperGlue}) {
    const std::string prefix = suite_name(suite) + "/";
    std::vector<double> means;
    Json tasks = Json::array();
    for (const TaskResult& result : results) {
      if (!result.task.starts_with(prefix) || result.models().empty()) continue;
      tasks.push_back(result.task);
      std::vector<double> values;
      for (const FineTunedModel& model : result.models()) values.push_back(average_goal(model));
      if (means.empty()) means.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) means[i] += values[i];
    }
    if (tasks.empty()) continue;
    for (double& one : means) one /= static_cast<double>(tasks.size());
    Json average = {{"suite", suite_name(suite)}, {"tasks", tasks}};
    average.update(summary(means));
    (*object)["averages"].push_back(std::move(average));
  }
}

}  // namespace

std::vector<double> TaskResult::values(size_t part, size_t score) const {
  std::vector<double> values;
  for (const FineTunedModel& model : models()) values.push_back(model.parts.at(part).scores.at(score).value);
  return values;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

Json results_object(const std::string& model, const std::vector<TaskResult>& results, const Json& options) {
  Json object = {{"format", "headshare-finetune"}, {"format_version", 1}, {"model", model}};
  for (const TaskResult& result : results) object["tasks"].push_back(to_object(result));
  add_averages(results, &object);
  object["options"] = options;
  return object;
}

}  // namespace headshare
