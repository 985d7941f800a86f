// Makes the table of a benchmark's tasks: a row for each variant, a column for each task, or of a single task for each
// metric.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

struct TaskColumn {
  std::string heading;               // "cola", "exact_match"
  std::vector<Summary> scores = {};  // of each row; of no seed where there is none
  int digits = 2;
  std::optional<double> best = {};  // the best mean

  std::string text(size_t row) const;  // "80.12 ±0.45", "-"
  bool is_best(size_t row) const;
};

// Returns no columns for what is no benchmark.
std::vector<TaskColumn> task_columns(const Subject& subject, const std::vector<VariantRow>& rows);

// Returns what the columns hold, as a title: "Tasks", "Metrics of squad".
std::string task_table_title(const Subject& subject);

}  // namespace headshare
