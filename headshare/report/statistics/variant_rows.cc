#include "headshare/report/statistics/variant_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/report/statistics/wording.h"

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

// Nothing where a seed's score has no interval. Below three seeds the mean of their intervals: the seeds score the same
// sentences, so that those move them alike.
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

// Of those scores that every cell has as a number; `scores` gives the list of a cell.
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

// Mean of the chosen values, each with its weight.
double mean_at(const Column& values, const Column& weights, std::span<const int64_t> indices) {
  double sum = 0;
  double weight = 0;
  for (const int64_t index : indices) {
    sum += weights[static_cast<size_t>(index)] * values[static_cast<size_t>(index)];
    weight += weights[static_cast<size_t>(index)];
  }
  return sum / weight;
}

Column block_weights(const Cell& cell) {
  if (cell.block_targets.empty()) return Column(cell.blocks.size(), 1);
  return {cell.block_targets.begin(), cell.block_targets.end()};
}

// Over sentences, the mean over the seeds of what each gives: nothing where blocks are no sentences.
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

// Chosen by validation alone, so that the test part judges a choice it had no say in.
bool better(const SettingRow& a, const SettingRow& b) {
  if (a.seeds.size() != b.seeds.size()) return a.seeds.size() > b.seeds.size();
  return !a.seeds.empty() && a.validation_loss.mean < b.validation_loss.mean;
}

// Two variants' cells with the same seeds, at the same places.
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

// How many blocks all of these cells have; 0 when they differ, or are too few to draw from. Windows of a text are not
// the same for two tokenizers.
size_t common_blocks(const Pairs& pairs) {
  if (pairs.ours.empty()) return 0;
  const size_t count = pairs.ours.front()->blocks.size();
  const auto windows_of = [](const Cell* cell) {
    return cell->tasks.empty() ? cell->options.value("tokenizer", nlohmann::json()) : nlohmann::json();
  };
  const nlohmann::json windows = windows_of(pairs.ours.front());
  const auto differs = [&](const Cell* cell) { return cell->blocks.size() != count || windows_of(cell) != windows; };
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
  const Column weights = block_weights(*pairs.ours.front());
  return bootstrap_interval(static_cast<int64_t>(blocks),
                            [&](std::span<const int64_t> indices) { return mean_at(differences, weights, indices); });
}

std::string other_tokens(const std::string& reference) { return "losses of other tokens than those of " + reference; }

void compare_with_reference(VariantRow* row, const Results& results, const Cells& ours, const Cells& theirs) {
  const std::string& reference = results.references.quality;
  const auto refuse = [row](std::string why) { row->why_no_difference = std::move(why); };
  if (row->variant == reference) return refuse(reference + " is the reference itself");
  if (theirs.empty()) return refuse("needs a finished " + reference);
  if (ours.empty()) return refuse("no seed is finished");
  if (!losses_compare(results, row->variant, reference)) return refuse(other_tokens(reference));
  const Pairs pairs = pair_by_seed(ours, theirs);
  if (pairs.ours.empty()) return refuse("no seed is finished for both this variant and " + reference);
  const bool by_loss = compares_loss(results.subject);
  const auto read = [by_loss](const Cell& cell) { return compared(cell, by_loss); };
  Difference difference{.seeds = static_cast<int64_t>(pairs.ours.size()), .over_blocks = block_interval(pairs)};
  for (size_t i = 0; i < pairs.ours.size(); ++i) {
    difference.by_seed.push_back(read(*pairs.ours[i]) - read(*pairs.reference[i]));
  }
  difference.mean = mean(difference.by_seed);
  difference.over_seeds = mean_interval(difference.by_seed);
  row->against_reference = std::move(difference);
}

// "; with 95% all of 8 intervals hold (Bonferroni), at this look and the 2 before"
std::string judgement_text(size_t compared, const std::vector<int64_t>& looks) {
  const size_t before = looks.empty() ? 0 : looks.size() - 1;
  const std::string hold =
      compared == 1 ? "a 95% interval" : join_text("with 95% all of ", compared, " intervals hold (Bonferroni)");
  return join_text(hold, before == 0 ? "" : join_text(", at this look and the ", before, " before it"));
}

// Judges the differences of all trained variants together.
void judge(const std::vector<int64_t>& looks, std::vector<VariantRow>* rows) {
  std::vector<Difference*> differences;
  std::vector<std::vector<double>> lists;
  for (VariantRow& row : *rows) {
    if (!row.against_reference) continue;
    row.against_reference->test = "not trained by itself";
    if (!row.trained()) continue;
    differences.push_back(&*row.against_reference);
    lists.push_back(row.against_reference->by_seed);
  }
  const auto judged = judge_differences(lists, judging_confidence(looks.size()));
  for (size_t i = 0; i < differences.size(); ++i) {
    Difference& difference = *differences[i];
    difference.judged = judged[i];
    difference.test = judged[i] ? join_text("paired by seed, ", difference.seeds, " seeds; ",
                                            judgement_text(judged[i]->compared, looks))
                                : join_text("no interval: it takes ", kFewestToJudge, " seeds");
  }
}

Retention without(const std::string& reason, const Retention& rule) {
  Retention none;
  none.reason_undefined = reason;
  none.rule = rule.rule;
  none.interval_rule = "no interval: the ratio is undefined";
  return none;
}

std::string why_no_ratio(const Results& results, const Cells& ours, const Cells& reference, const Pairs& pairs,
                         const std::string& name) {
  if (reference.empty()) return join_text("needs ", name, " among the finished variants");
  if (ours.empty()) return "no seed is finished";
  if (!losses_compare(results, ours.front()->key.variant, reference.front()->key.variant)) return other_tokens(name);
  return pairs.ours.empty() ? join_text("no seed is finished for both this variant and ", name) : "";
}

Retention prr_of(const Results& results, const Cells& ours, const Cells& theirs, const std::string& reference) {
  const PrrQuestion question{
      .quality = 1, .quality_mha = 1, .direction = results.subject.direction, .full_scale = results.subject.full_scale};
  const Pairs pairs = pair_by_seed(ours, theirs);
  const std::string reason = why_no_ratio(results, ours, theirs, pairs, reference);
  if (!reason.empty()) return without(reason, prr(question));
  const auto read = [](const Cell& cell) { return cell.quality; };
  return prr_over_seeds(question, column(pairs.ours, read), column(pairs.reference, read));
}

Retention peop_of(const Results& results, const Cells& ours, const Cells& theirs) {
  PeopQuestion question{.quality = 1,
                        .quality_sha = 1,
                        .parameters = 2,
                        .parameters_sha = 1,
                        .direction = results.subject.direction,
                        .full_scale = results.subject.full_scale};
  const Pairs pairs = pair_by_seed(ours, theirs);
  const std::string reason = why_no_ratio(results, ours, theirs, pairs, results.references.peop);
  if (!reason.empty()) return without(reason, peop(question));
  question.parameters = ours.front()->attention_parameters;
  question.parameters_sha = theirs.front()->attention_parameters;
  question.is_sha = ours.front()->key.variant == results.references.peop;
  const auto read = [](const Cell& cell) { return cell.quality; };
  return peop_over_seeds(question, column(pairs.ours, read), column(pairs.reference, read));
}

void add_costs(VariantRow* row, const Cells& cells) {
  if (cells.empty()) return;
  const Cell& first = *cells.front();
  row->weights_of = first.weights_of;
  row->attention_parameters = first.attention_parameters;
  row->attention_parameters_effective = first.attention_parameters_effective;
  row->total_parameters = first.total_parameters;
  row->embedding_parameters = first.embedding_parameters;
  row->feed_forward_width = first.feed_forward_width;
  row->cache_elements_per_token = first.cache_elements_per_token;
  row->cache_bytes_per_token = first.cache_bytes_per_token;
  row->source_cache_bytes_per_token = first.source_cache_bytes_per_token;
  row->decoding_context = first.decoding_context;
  row->attention_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.attention_memory_bytes; }));
  row->peak_memory_bytes = median_or_zero(column(cells, [](const Cell& c) { return c.peak_memory_bytes; }));
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

constexpr const char* kKind = "token-embedding";
constexpr const char* kTokenizer = "tokenizer";

// What a variant's losses are of: all hashes read words, and unless random tokens are words each embedding has codes of
// its own.
std::string targets_of(const Results& results, const std::string& variant) {
  const nlohmann::json own = variant_of(results, variant).options;
  const auto option = [&](const char* name) {
    const nlohmann::json& from = own.contains(name) ? own : results.options;
    return from.contains(name) && from.at(name).is_string() ? from.at(name).get<std::string>() : "";
  };
  const std::string tokenizer = option(kTokenizer);
  const std::string tokens = tokenizer.starts_with("hash-") ? "words" : tokenizer;
  return option("random-tokens") == "words" ? tokens : tokens + " " + option(kKind);
}

// The variant that differs in its embedding alone, which is a table.
std::string table_twin(const Results& results, const Variant& variant) {
  const auto rest = [](const Variant& one) {
    nlohmann::json options = one.options;
    options.erase(kKind);
    options.erase(kTokenizer);
    return options;
  };
  for (const std::string& name : variant_names(results)) {
    const Variant other = variant_of(results, name);
    if (other.options.value(kKind, "") == "table" && rest(other) == rest(variant)) return name;
  }
  return "";
}

}  // namespace

bool compares_embeddings(const Results& results) {
  const std::vector<std::string> names = variant_names(results);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return variant_of(results, name).options.contains(kKind); });
}

bool losses_compare(const Results& results, const std::string& variant, const std::string& other) {
  return !results.subject.tasks.empty() || targets_of(results, variant) == targets_of(results, other);
}

bool all_losses_compare(const Results& results) {
  const std::vector<std::string> names = variant_names(results);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return losses_compare(results, name, names.front()); });
}

bool compares_loss(const Subject& subject) {
  return subject.measure == "perplexity" || subject.measure == "masked-perplexity";
}

bool less_is_better(const Subject& subject) {
  return compares_loss(subject) || subject.direction == Direction::kLowerIsBetter;
}

std::string compared_name(const Subject& subject) {
  return join_text(subject.has_test_part ? "test " : "validation ",
                   compares_loss(subject) ? "loss" : score_heading(subject.measure));
}

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
  judge(results.looks, &rows);
  return rows;
}

}  // namespace headshare
