#include "headshare/report/statistics/against_reference.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/report/statistics/comparability.h"

namespace headshare {
namespace {

double compared(const Cell& cell, bool by_loss) { return by_loss ? cell.test_loss : cell.quality; }

Column block_weights(const Cell& cell) {
  if (cell.block_targets.empty()) return Column(cell.blocks.size(), 1);
  return {cell.block_targets.begin(), cell.block_targets.end()};
}

// These are two variants' cells with the same seeds, at the same places.
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

// Returns how many blocks all of these cells have; 0 when they differ, or are too few to draw from. Windows of a text
// are not the same for two tokenizers.
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

// Returns "; with 95% all of 8 intervals hold (Bonferroni), at this look and the 2 before", for example.
std::string judgement_text(size_t compared, const std::vector<int64_t>& looks) {
  const size_t before = looks.empty() ? 0 : looks.size() - 1;
  const std::string hold =
      compared == 1 ? "a 95% interval" : join_text("with 95% all of ", compared, " intervals hold (Bonferroni)");
  return join_text(hold, before == 0 ? "" : join_text(", at this look and the ", before, " before it"));
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

}  // namespace

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

void judge_together(const std::vector<int64_t>& looks, std::vector<VariantRow>* rows) {
  std::vector<Difference*> differences;
  std::vector<std::vector<double>> lists;
  for (VariantRow& row : *rows) {
    if (!row.against_reference) continue;
    row.against_reference->test = "not trained by itself";
    if (!row.trained()) continue;
    differences.push_back(&*row.against_reference);
    lists.push_back(row.against_reference->by_seed);
  }
  const double confidence = judging_confidence(looks.size());
  auto judged = judge_differences(lists, confidence);
  // Readers hold p-values against the same 5 % however often the data were looked at.
  for (auto& one : judged) {
    if (one) one->p_value = std::min(1.0, one->p_value * (1 - kConfidence) / (1 - confidence));
  }
  for (size_t i = 0; i < differences.size(); ++i) {
    Difference& difference = *differences[i];
    difference.judged = judged[i];
    difference.test = judged[i] ? join_text("paired by seed, ", difference.seeds, " seeds; ",
                                            judgement_text(judged[i]->compared, looks))
                                : join_text("no interval: it takes ", kFewestToJudge, " seeds");
  }
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
  question.parameters = ours.front()->size.attention_parameters;
  question.parameters_sha = theirs.front()->size.attention_parameters;
  question.is_sha = ours.front()->key.variant == results.references.peop;
  const auto read = [](const Cell& cell) { return cell.quality; };
  return peop_over_seeds(question, column(pairs.ours, read), column(pairs.reference, read));
}

}  // namespace headshare
