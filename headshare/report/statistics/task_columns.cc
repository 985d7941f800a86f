#include "headshare/report/statistics/task_columns.h"

#include <algorithm>
#include <cmath>

#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string heading(const std::string& task) { return task.substr(task.find('/') + 1); }

// Tells whether a metric is a score: counts of examples and thresholds are none.
bool is_score(const std::string& metric) { return !metric.ends_with("total") && !metric.ends_with("thresh"); }

// Returns the metrics of the benchmark's only task, as the variants have them.
std::vector<std::string> metric_names(const std::vector<VariantRow>& rows) {
  std::vector<std::string> names;
  for (const VariantRow& row : rows) {
    for (const auto& [name, summary, interval] : row.tasks.front().metrics) {
      if (is_score(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

void find_best(TaskColumn* column) {
  for (const Summary& score : column->scores) {
    if (score.count > 0) column->best = std::max(column->best.value_or(score.mean), score.mean);
  }
}

}  // namespace

std::string TaskColumn::text(size_t row) const { return summary_text(scores.at(row), digits); }

bool TaskColumn::is_best(size_t row) const { return scores.at(row).count > 0 && best && scores.at(row).mean >= *best; }

std::vector<TaskColumn> task_columns(const Subject& subject, const std::vector<VariantRow>& rows) {
  std::vector<TaskColumn> columns;
  if (subject.tasks.size() == 1) {
    for (const std::string& name : metric_names(rows)) {
      TaskColumn column{.heading = name};
      for (const VariantRow& row : rows) column.scores.push_back(score_of(row.tasks.front().metrics, name).summary);
      find_best(&column);
      if (std::abs(column.best.value_or(0)) <= 1) column.digits = 4;  // a share, not per cent
      columns.push_back(std::move(column));
    }
    return columns;
  }
  for (size_t i = 0; i < subject.tasks.size(); ++i) {
    TaskColumn column{.heading = heading(subject.tasks[i])};
    for (const VariantRow& row : rows) column.scores.push_back(row.tasks.at(i).score);
    find_best(&column);
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string task_table_title(const Subject& subject) {
  return subject.tasks.size() == 1 ? "Metrics of " + subject.tasks.front() : "Tasks";
}

}  // namespace headshare
