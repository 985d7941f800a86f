#include "headshare/report/statistics/variant_rows.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/report/statistics/against_reference.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/seed_columns.h"

namespace headshare {
namespace {

Summary summary_or_none(const Column& values) { return values.empty() ? Summary{} : summarize(values); }

double median_or_zero(const Column& values) { return values.empty() ? 0 : median(values); }

// Returns nothing where a seed's score has no interval. Below three seeds it is the mean of their intervals: the seeds
// score the same sentences, so that those move them alike.
std::optional<Interval> interval_of_mean(const std::vector<Score>& seeds) {
  Column values;
  Interval mean;
  for (const Score& one : seeds) {
    if (!one.interval) return std::nullopt;
    values.push_back(one.value);
    mean.low += one.interval->low / static_cast<double>(seeds.size());
    mean.high += one.interval->high / static_cast<double>(seeds.size());
  }
  return seeds.size() < kFewestToJudge ? mean : mean_interval(values);
}

// Summarises the scores that every cell has as a number; `scores` gives the list of a cell.
template <class Scores>
std::vector<ScoreRow> summarise_scores(const Cells& cells, const Scores& scores) {
  std::vector<ScoreRow> rows;
  if (cells.empty()) return rows;
  for (const Score& wanted : scores(*cells.front())) {
    std::vector<Score> found;
    for (const Cell* cell : cells) {
      for (const Score& one : scores(*cell)) {
        if (one.name == wanted.name && std::isfinite(one.value)) found.push_back(one);
      }
    }
    if (found.size() != cells.size()) continue;
    Column values;
    for (const Score& one : found) values.push_back(one.value);
    rows.push_back({.name = wanted.name, .summary = summarize(values), .interval = interval_of_mean(found)});
  }
  return rows;
}

// Returns an interval over sentences, the mean over the seeds of what each gives: nothing where blocks are no
// sentences.
std::optional<Interval> sentence_interval(const Subject& subject, const Cells& cells) {
  const size_t count = cells.front()->blocks.size();
  const bool alike = std::all_of(cells.begin(), cells.end(), [&](const Cell* c) { return c->blocks.size() == count; });
  if (subject.block != "sentences" || !alike) return std::nullopt;
  Column means(count);
  for (const Cell* cell : cells) {
    for (size_t i = 0; i < count; ++i) means[i] += cell->blocks[i] / static_cast<double>(cells.size());
  }
  const Column weights(count, 1);
  return bootstrap_interval(static_cast<int64_t>(count),
                            [&](std::span<const int64_t> indices) { return mean_at(means, weights, indices); });
}

void add_quality_interval(SettingRow* row, const Subject& subject, const Cells& cells) {
  if (cells.empty()) {
    row->quality_interval_rule = "no interval: no seed is finished";
  } else if (cells.size() < kFewestToJudge) {
    row->quality_interval = sentence_interval(subject, cells);
    if (row->quality_interval) {
      row->quality_interval_rule = "95% bootstrap interval over sentences, which says nothing of other seeds";
      return;
    }
    row->quality_interval_rule =
        cells.size() == 1 ? "no interval: one seed" : "no interval: two seeds may agree by luck";
  } else {
    row->quality_interval = mean_interval(column(cells, [](const Cell& c) { return c.quality; }));
    row->quality_interval_rule = join_text("95% Student t interval over ", cells.size(), " seeds");
  }
}

SettingRow summarise_setting(const Results& results, const std::string& variant, const std::string& setting) {
  SettingRow row{.setting = setting};
  row.planned = std::count_if(results.planned.begin(), results.planned.end(),
                              [&](const CellKey& key) { return key.variant == variant && key.setting == setting; });
  const Cells cells = cells_of(results, variant, setting);
  for (const Cell* cell : cells) row.seeds.push_back(cell->key.seed);
  row.validation_loss = summary_or_none(column(cells, [](const Cell& c) { return c.validation_loss; }));
  row.test_loss = summary_or_none(column(cells, [](const Cell& c) { return c.test_loss; }));
  row.quality = summary_or_none(column(cells, [](const Cell& c) { return c.quality; }));
  add_quality_interval(&row, results.subject, cells);
  row.scores = summarise_scores(cells, [](const Cell& c) -> const std::vector<Score>& { return c.scores; });
  return row;
}

// Tells whether setting `a` is chosen before `b`: by validation alone, so that the test part judges a choice it had no
// say in.
bool better(const SettingRow& a, const SettingRow& b) {
  if (a.seeds.size() != b.seeds.size()) return a.seeds.size() > b.seeds.size();
  return !a.seeds.empty() && a.validation_loss.mean < b.validation_loss.mean;
}

void add_costs(VariantRow* row, const Cells& cells) {
  if (cells.empty()) return;
  const Cell& first = *cells.front();
  row->weights_of = first.weights_of;
  row->size = first.size;
  row->decoding_context = first.decoding_context;
  row->attention_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.attention_memory_bytes; }));
  row->peak_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.peak_memory_bytes; }));
  row->peak_device_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.peak_device_bytes; }));
  row->training_tokens_per_second =
      median_or_zero(column(cells, [](const Cell& c) { return c.training_tokens_per_second; }));
  row->decoding_tokens_per_second =
      median_or_zero(column(cells, [](const Cell& c) { return c.decoding_tokens_per_second; }));
  row->outputs_per_second = median_or_zero(column(cells, [](const Cell& c) { return c.outputs_per_second; }));
}

// Every seed scores the same rows; what they reach there is summarised where all have it.
void add_coverage(TaskRow* task, const Cells& cells, size_t i) {
  const auto has = [i](const Cell* cell) {
    return cell->tasks.at(i).coverage && cell->tasks.at(i).coverage->unseen_score;
  };
  if (cells.empty() || !cells.front()->tasks.at(i).coverage) return;
  task->coverage = cells.front()->tasks.at(i).coverage;
  task->coverage->unseen_score.reset();
  if (!std::all_of(cells.begin(), cells.end(), has)) return;
  task->unseen_score =
      summary_or_none(column(cells, [i](const Cell& c) { return *c.tasks.at(i).coverage->unseen_score; }));
}

void add_tasks(VariantRow* row, const std::vector<std::string>& tasks, const Cells& cells) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskRow task{.task = tasks[i],
                 .score = summary_or_none(column(cells, [i](const Cell& c) { return c.tasks.at(i).score; }))};
    task.metrics =
        summarise_scores(cells, [i](const Cell& c) -> const std::vector<Score>& { return c.tasks.at(i).metrics; });
    add_coverage(&task, cells, i);
    row->tasks.push_back(std::move(task));
  }
}

VariantRow begin_row(const Results& results, const std::string& variant) {
  VariantRow row{.variant = variant, .scheme = variant_of(results, variant).scheme};
  for (const CellKey& key : results.planned) {
    if (key.variant != variant) continue;
    const bool known = std::any_of(row.settings.begin(), row.settings.end(),
                                   [&](const SettingRow& other) { return other.setting == key.setting; });
    if (!known) row.settings.push_back(summarise_setting(results, variant, key.setting));
  }
  row.best = *std::min_element(row.settings.begin(), row.settings.end(), better);
  std::copy_if(results.failed.begin(), results.failed.end(), std::back_inserter(row.failed),
               [&](const FailedCell& cell) { return cell.key.variant == variant; });
  const Cells cells = cells_of(results, variant, row.best.setting);
  add_costs(&row, cells);
  add_tasks(&row, results.subject.tasks, cells);
  return row;
}

}  // namespace

ScoreRow score_of(const std::vector<ScoreRow>& scores, const std::string& name) {
  for (const ScoreRow& one : scores) {
    if (one.name == name) return one;
  }
  return {.name = name, .summary = {}};
}

std::vector<std::string> score_names(const std::vector<VariantRow>& rows) {
  std::vector<std::string> names;
  for (const VariantRow& row : rows) {
    for (const ScoreRow& one : row.best.scores) {
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
  }
  return names;
}

std::vector<const Cell*> cells_of(const Results& results, const std::string& variant, const std::string& setting) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : results.cells) {
    if (cell.key.variant == variant && cell.key.setting == setting) cells.push_back(&cell);
  }
  return cells;
}

std::vector<VariantRow> summarise(const Results& results) {
  std::vector<VariantRow> rows;
  for (const std::string& name : variant_names(results)) rows.push_back(begin_row(results, name));
  const auto cells_of_best = [&](const std::string& variant) -> Cells {
    for (const VariantRow& row : rows) {
      if (row.variant == variant) return cells_of(results, variant, row.best.setting);
    }
    return {};
  };
  const Cells reference = cells_of_best(results.references.quality);
  const Cells peop_reference = cells_of_best(results.references.peop);
  const double reference_memory =
      median_or_zero(column(reference, [](const Cell& c) { return c.attention_memory_bytes; }));
  const bool embeddings = compares_embeddings(results);
  for (VariantRow& row : rows) {
    const Cells ours = cells_of(results, row.variant, row.best.setting);
    compare_with_reference(&row, results, ours, reference);
    row.prr = prr_of(results, ours, reference, results.references.quality);
    row.peop = peop_of(results, ours, peop_reference);
    if (embeddings) {
      const std::string twin = table_twin(results, variant_of(results, row.variant));
      row.table_prr = prr_of(results, ours, cells_of_best(twin), twin.empty() ? "a table of the same variant" : twin);
    }
    if (reference_memory > 0 && row.attention_memory_bytes > 0) {
      row.attention_memory_saved_percent = 100 * (1 - row.attention_memory_bytes / reference_memory);
    }
  }
  judge_together(results.looks, &rows);
  return rows;
}

}  // namespace headshare
