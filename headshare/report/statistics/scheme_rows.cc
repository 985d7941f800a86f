#include "headshare/report/statistics/scheme_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/format.h"

namespace headshare {
namespace {

using Column = std::vector<double>;
using Cells = std::vector<const Cell*>;

template <class Read>
Column column(const Cells& cells, const Read& read) {
  Column values;
  for (const Cell* cell : cells) values.push_back(static_cast<double>(read(*cell)));
  return values;
}

Summary summary_or_none(const Column& values) { return values.empty() ? Summary{} : summarize(values); }

double median_or_zero(const Column& values) { return values.empty() ? 0 : median(values); }

double compared(const Cell& cell, bool by_loss) { return by_loss ? cell.test_loss : cell.quality; }

// Nothing unless every cell has the number.
std::optional<Summary> summary_where_all(const Cells& cells, std::optional<double> Cell::*number) {
  const auto has = [&](const Cell* cell) { return bool(cell->*number); };
  if (cells.empty() || !std::all_of(cells.begin(), cells.end(), has)) return std::nullopt;
  return summarize(column(cells, [&](const Cell& cell) { return *(cell.*number); }));
}

double mean_at(const Column& values, std::span<const int64_t> indices) {
  double sum = 0;
  for (const int64_t index : indices) sum += values[static_cast<size_t>(index)];
  return sum / static_cast<double>(indices.size());
}

// "171 blocks of sequences"; of a benchmark every task is a block.
std::string blocks_text(size_t blocks, const Subject& subject) {
  return join_text(blocks, subject.tasks.empty() ? " blocks of " : " ", subject.block);
}

// The measure over some of a cell's blocks.
double quality_at(const Cell& cell, bool by_loss, std::span<const int64_t> indices) {
  const double mean = mean_at(cell.blocks, indices);
  return by_loss ? std::exp(mean) : mean;
}

void add_quality_interval(SettingRow* row, const Cells& cells, const Subject& subject) {
  if (cells.empty()) {
    row->quality_interval_rule = "no interval: no seed is finished";
    return;
  }
  row->quality_interval = mean_interval(column(cells, [](const Cell& c) { return c.quality; }));
  if (row->quality_interval) {
    row->quality_interval_rule = join_text("95% Student t interval over ", cells.size(), " seeds");
    return;
  }
  const size_t blocks = cells.size() == 1 ? cells.front()->blocks.size() : 0;
  row->quality_interval_rule = "no interval: one seed, and no blocks";
  if (blocks < 2) return;
  row->quality_interval = bootstrap_interval(static_cast<int64_t>(blocks), [&](std::span<const int64_t> indices) {
    return quality_at(*cells.front(), compares_loss(subject), indices);
  });
  row->quality_interval_rule = join_text("95% bootstrap interval over ", blocks_text(blocks, subject), " of one seed");
}

SettingRow summarise_setting(const Results& results, const std::string& scheme, const std::string& setting) {
  SettingRow row{.setting = setting};
  row.planned = std::count_if(results.planned.begin(), results.planned.end(),
                              [&](const CellKey& key) { return key.scheme == scheme && key.setting == setting; });
  const Cells cells = cells_of(results, scheme, setting);
  for (const Cell* cell : cells) row.seeds.push_back(cell->key.seed);
  row.validation_loss = summary_or_none(column(cells, [](const Cell& c) { return c.validation_loss; }));
  row.test_loss = summary_or_none(column(cells, [](const Cell& c) { return c.test_loss; }));
  row.quality = summary_or_none(column(cells, [](const Cell& c) { return c.quality; }));
  add_quality_interval(&row, cells, results.subject);
  row.bits_per_byte = summary_where_all(cells, &Cell::bits_per_byte);
  row.pseudo_perplexity = summary_where_all(cells, &Cell::pseudo_perplexity);
  return row;
}

// Chosen by validation alone, so that the test part judges a choice it had no say in.
bool better(const SettingRow& a, const SettingRow& b) {
  if (a.seeds.size() != b.seeds.size()) return a.seeds.size() > b.seeds.size();
  return !a.seeds.empty() && a.validation_loss.mean < b.validation_loss.mean;
}

// Two schemes' cells with the same seeds, at the same places.
struct Pairs {
  Cells ours;
  Cells reference;
};

Pairs pair_by_seed(const Cells& ours, const Cells& reference) {
  Pairs pairs;
  for (const Cell* cell : ours) {
    const auto same = std::find_if(reference.begin(), reference.end(),
                                   [cell](const Cell* other) { return other->key.seed == cell->key.seed; });
    if (same == reference.end()) continue;
    pairs.ours.push_back(cell);
    pairs.reference.push_back(*same);
  }
  return pairs;
}

// How many blocks all of these cells have; 0 when they differ, or are too few to draw from.
size_t common_blocks(const Pairs& pairs) {
  const size_t count = pairs.ours.empty() ? 0 : pairs.ours.front()->blocks.size();
  const auto differs = [count](const Cell* cell) { return cell->blocks.size() != count; };
  const bool same = std::none_of(pairs.ours.begin(), pairs.ours.end(), differs) &&
                    std::none_of(pairs.reference.begin(), pairs.reference.end(), differs);
  return same && count >= 2 ? count : 0;
}

std::optional<Interval> block_interval(const Pairs& pairs) {
  const size_t blocks = common_blocks(pairs);
  if (blocks == 0) return std::nullopt;
  Column differences(blocks);
  for (size_t pair = 0; pair < pairs.ours.size(); ++pair) {
    for (size_t b = 0; b < blocks; ++b) {
      differences[b] += (pairs.ours[pair]->blocks[b] - pairs.reference[pair]->blocks[b]);
    }
  }
  for (double& difference : differences) difference /= static_cast<double>(pairs.ours.size());
  return bootstrap_interval(static_cast<int64_t>(blocks),
                            [&](std::span<const int64_t> indices) { return mean_at(differences, indices); });
}

std::string test_text(const Difference& d, const Subject& subject, size_t blocks) {
  std::string text;
  if (d.over_seeds) {
    text = join_text("paired Student t over ", d.seeds, " seeds");
    text += d.p_value ? ", two-sided p-value"
                      : join_text(" (no p-value: it takes ", kFewestPairsForPValue, " seeds or more)");
  }
  if (d.over_blocks) {
    text += join_text(text.empty() ? "" : "; ", "bootstrap over ", blocks_text(blocks, subject), " within ",
                      d.seeds == 1 ? "the one seed" : "the seeds");
  }
  return text.empty() ? "no interval: one seed, and no blocks that both schemes have" : text;
}

void compare_with_mha(SchemeRow* row, const Results& results, const Cells& ours, const Cells& mha) {
  const auto refuse = [row](std::string why) { row->why_no_difference = std::move(why); };
  if (row->scheme == "mha") return refuse("mha is the reference itself");
  if (mha.empty()) return refuse("needs a finished mha");
  if (ours.empty()) return refuse("no seed is finished");
  const Pairs pairs = pair_by_seed(ours, mha);
  if (pairs.ours.empty()) return refuse("no seed is finished for both this scheme and mha");
  const bool by_loss = compares_loss(results.subject);
  const auto read = [by_loss](const Cell& cell) { return compared(cell, by_loss); };
  const PairedDifference seeds = paired_difference(column(pairs.ours, read), column(pairs.reference, read));
  Difference difference{.seeds = seeds.count,
                        .mean = seeds.mean,
                        .over_seeds = seeds.interval,
                        .over_blocks = block_interval(pairs),
                        .p_value = seeds.p_value};
  difference.test = test_text(difference, results.subject, common_blocks(pairs));
  row->against_mha = std::move(difference);
}

// With one seed: how far the ratio depends on which blocks were evaluated. `ratio(quality, reference)`.
template <class Ratio>
void add_block_interval(Retention* retention, const Pairs& pairs, const Subject& subject, const Ratio& ratio) {
  const size_t blocks = common_blocks(pairs);
  if (!retention->value || retention->interval || pairs.ours.size() != 1 || blocks == 0) return;
  const bool by_loss = compares_loss(subject);
  bool defined = true;
  const std::optional<Interval> interval =
      bootstrap_interval(static_cast<int64_t>(blocks), [&](std::span<const int64_t> indices) {
        const std::optional<double> value =
            ratio(quality_at(*pairs.ours[0], by_loss, indices), quality_at(*pairs.reference[0], by_loss, indices));
        defined = defined && value.has_value();
        return value.value_or(0);
      });
  if (!defined) {
    retention->interval_rule = "no interval: some resamples leave the ratio undefined";
    return;
  }
  retention->interval = interval;
  retention->interval_rule =
      join_text("95% bootstrap interval over ", blocks_text(blocks, subject), " within one seed");
}

Retention without(const std::string& reason, const Retention& rule) {
  Retention none;
  none.reason_undefined = reason;
  none.rule = rule.rule;
  none.interval_rule = "no interval: the ratio is undefined";
  return none;
}

std::string why_no_ratio(const Cells& ours, const Cells& reference, const Pairs& pairs, const char* name) {
  if (reference.empty()) return join_text("needs ", name, " among the finished schemes");
  if (ours.empty()) return "no seed is finished";
  return pairs.ours.empty() ? join_text("no seed is finished for both this scheme and ", name) : "";
}

Retention prr_of(const Results& results, const Cells& ours, const Cells& mha) {
  const PrrQuestion question{
      .quality = 1, .quality_mha = 1, .direction = results.subject.direction, .full_scale = results.subject.full_scale};
  const Pairs pairs = pair_by_seed(ours, mha);
  const std::string reason = why_no_ratio(ours, mha, pairs, "mha");
  if (!reason.empty()) return without(reason, prr(question));
  const auto read = [](const Cell& cell) { return cell.quality; };
  Retention retention = prr_over_seeds(question, column(pairs.ours, read), column(pairs.reference, read));
  add_block_interval(&retention, pairs, results.subject, [&](double quality, double reference) {
    PrrQuestion one = question;
    one.quality = quality;
    one.quality_mha = reference;
    return prr(one).value;
  });
  return retention;
}

Retention peop_of(const Results& results, const Cells& ours, const Cells& sha) {
  PeopQuestion question{.quality = 1,
                        .quality_sha = 1,
                        .parameters = 2,
                        .parameters_sha = 1,
                        .direction = results.subject.direction,
                        .full_scale = results.subject.full_scale};
  const Pairs pairs = pair_by_seed(ours, sha);
  const std::string reason = why_no_ratio(ours, sha, pairs, "sha");
  if (!reason.empty()) return without(reason, peop(question));
  question.parameters = ours.front()->attention_parameters;
  question.parameters_sha = sha.front()->attention_parameters;
  question.is_sha = ours.front()->key.scheme == "sha";
  const auto read = [](const Cell& cell) { return cell.quality; };
  Retention retention = peop_over_seeds(question, column(pairs.ours, read), column(pairs.reference, read));
  add_block_interval(&retention, pairs, results.subject, [&](double quality, double reference) {
    PeopQuestion one = question;
    one.quality = quality;
    one.quality_sha = reference;
    return peop(one).value;
  });
  return retention;
}

void add_costs(SchemeRow* row, const Cells& cells) {
  if (cells.empty()) return;
  const Cell& first = *cells.front();
  row->trained = first.trained;
  row->attention_parameters = first.attention_parameters;
  row->attention_parameters_effective = first.attention_parameters_effective;
  row->total_parameters = first.total_parameters;
  row->feed_forward_width = first.feed_forward_width;
  row->cache_elements_per_token = first.cache_elements_per_token;
  row->cache_bytes_per_token = first.cache_bytes_per_token;
  row->decoding_context = first.decoding_context;
  row->attention_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.attention_memory_bytes; }));
  row->peak_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.peak_memory_bytes; }));
  row->training_tokens_per_second =
      median_or_zero(column(cells, [](const Cell& c) { return c.training_tokens_per_second; }));
  row->decoding_tokens_per_second =
      median_or_zero(column(cells, [](const Cell& c) { return c.decoding_tokens_per_second; }));
}

// The values of a task's metric with all seeds; empty where one of them lacks it.
Column metric_column(const Cells& cells, size_t task, const std::string& name) {
  Column values;
  for (const Cell* cell : cells) {
    for (const Score& metric : cell->tasks.at(task).metrics) {
      if (metric.name == name && std::isfinite(metric.value)) values.push_back(metric.value);
    }
  }
  return values.size() == cells.size() ? values : Column();
}

void add_tasks(SchemeRow* row, const std::vector<std::string>& tasks, const Cells& cells) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskRow task{.task = tasks[i],
                 .score = summary_or_none(column(cells, [i](const Cell& c) { return c.tasks.at(i).score; }))};
    const std::vector<Score> metrics = cells.empty() ? std::vector<Score>() : cells.front()->tasks.at(i).metrics;
    for (const Score& metric : metrics) {
      const Column values = metric_column(cells, i, metric.name);
      if (!values.empty()) task.metrics.emplace_back(metric.name, summarize(values));
    }
    row->tasks.push_back(std::move(task));
  }
}

SchemeRow begin_row(const Results& results, const std::string& scheme) {
  SchemeRow row{.scheme = scheme};
  for (const CellKey& key : results.planned) {
    if (key.scheme != scheme) continue;
    const bool known = std::any_of(row.settings.begin(), row.settings.end(),
                                   [&](const SettingRow& other) { return other.setting == key.setting; });
    if (!known) row.settings.push_back(summarise_setting(results, scheme, key.setting));
  }
  row.best = *std::min_element(row.settings.begin(), row.settings.end(), better);
  std::copy_if(results.failed.begin(), results.failed.end(), std::back_inserter(row.failed),
               [&](const FailedCell& cell) { return cell.key.scheme == scheme; });
  const Cells cells = cells_of(results, scheme, row.best.setting);
  add_costs(&row, cells);
  add_tasks(&row, results.subject.tasks, cells);
  return row;
}

}  // namespace

bool compares_loss(const Subject& subject) {
  return subject.measure == "perplexity" || subject.measure == "masked-perplexity";
}

std::string compared_name(const Subject& subject) {
  return join_text(subject.has_test_part ? "test " : "validation ", compares_loss(subject) ? "loss" : subject.measure);
}

std::vector<const Cell*> cells_of(const Results& results, const std::string& scheme, const std::string& setting) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : results.cells) {
    if (cell.key.scheme == scheme && cell.key.setting == setting) cells.push_back(&cell);
  }
  return cells;
}

std::vector<SchemeRow> summarise(const Results& results) {
  std::vector<SchemeRow> rows;
  for (const CellKey& key : results.planned) {
    const bool known =
        std::any_of(rows.begin(), rows.end(), [&](const SchemeRow& row) { return row.scheme == key.scheme; });
    if (!known) rows.push_back(begin_row(results, key.scheme));
  }
  const auto reference = [&](const char* scheme) -> Cells {
    for (const SchemeRow& row : rows) {
      if (row.scheme == scheme) return cells_of(results, scheme, row.best.setting);
    }
    return {};
  };
  const Cells mha = reference("mha");
  const Cells sha = reference("sha");
  const double mha_memory = median_or_zero(column(mha, [](const Cell& c) { return c.attention_memory_bytes; }));
  for (SchemeRow& row : rows) {
    const Cells ours = cells_of(results, row.scheme, row.best.setting);
    compare_with_mha(&row, results, ours, mha);
    row.prr = prr_of(results, ours, mha);
    row.peop = peop_of(results, ours, sha);
    if (mha_memory > 0 && row.attention_memory_bytes > 0) {
      row.attention_memory_saved_percent = 100 * (1 - row.attention_memory_bytes / mha_memory);
    }
  }
  return rows;
}

}  // namespace headshare
