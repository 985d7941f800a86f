#include "headshare/report/statistics/embedding_columns.h"

#include <algorithm>
#include <functional>

#include "headshare/base/error.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

struct Shown {
  std::string text;
  std::optional<double> value = {};
};

Shown shown(const Summary& summary, int digits) {
  if (summary.count == 0) return {"-"};
  return {summary_text(summary, digits), summary.mean};
}

std::optional<double> positive(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

// Adds for each task the score of the rows with unseen words: "cola, rows with unseen words".
void add_tasks(const std::vector<VariantRow>& rows,
               const std::function<void(const std::string&, const std::function<Shown(const VariantRow&)>&)>& add) {
  if (rows.empty()) return;
  for (size_t i = 0; i < rows.front().tasks.size(); ++i) {
    const bool known = std::any_of(rows.begin(), rows.end(),
                                   [i](const VariantRow& row) { return row.tasks.at(i).unseen_score.count > 0; });
    if (!known) continue;
    const std::string& task = rows.front().tasks[i].task;
    add(task.substr(task.find('/') + 1) + ", rows with unseen words",
        [i](const VariantRow& row) { return shown(row.tasks.at(i).unseen_score, 1); });
  }
}

}  // namespace

std::vector<EmbeddingColumn> embedding_columns(const Results& results, const std::vector<VariantRow>& rows) {
  std::vector<EmbeddingColumn> columns;
  if (!compares_embeddings(results)) return columns;
  const auto add = [&](const std::string& heading, const std::function<Shown(const VariantRow&)>& of) {
    EmbeddingColumn column{.heading = heading};
    for (const VariantRow& row : rows) {
      Shown one = of(row);
      column.texts.push_back(std::move(one.text));
      column.values.push_back(one.value);
    }
    columns.push_back(std::move(column));
  };
  const auto count = [](int64_t value) { return Shown{count_text(value), positive(static_cast<double>(value))}; };
  add("embedding parameters", [&](const VariantRow& row) { return count(row.size.embedding_parameters); });
  add("total parameters", [&](const VariantRow& row) { return count(row.size.total_parameters); });
  add(quality_name(results.subject), [&](const VariantRow& row) {
    const Summary& quality = row.best.quality;
    return Shown{quality_text(results.subject, quality),
                 quality.count > 0 ? std::optional(quality.mean) : std::nullopt};
  });
  add("PRR against the table", [](const VariantRow& row) {
    return Shown{retention_text(row.table_prr, 1), row.table_prr.value};
  });
  add_tasks(rows, add);
  add("peak memory", [](const VariantRow& row) {
    return Shown{row.peak_memory_bytes > 0 ? bytes_text(row.peak_memory_bytes) : "-", positive(row.peak_memory_bytes)};
  });
  const bool busy = busy_speeds(results, rows).training;
  add("training " + training_unit(results.subject) + "/s", [busy](const VariantRow& row) {
    return Shown{speed_text(row, row.training_tokens_per_second, busy), positive(row.training_tokens_per_second)};
  });
  columns.back().busy = busy;
  return columns;
}

}  // namespace headshare
