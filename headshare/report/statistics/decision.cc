#include "headshare/report/statistics/decision.h"

#include <algorithm>
#include <cmath>

namespace headshare {

Decision decide(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& reference) {
  const double allowed = margin(results, reference);
  Decision decision;
  for (const VariantRow& row : rows) {
    const bool judged = row.against_reference && row.trained() && row.against_reference->interval();
    if (!judged || row.size.attention_parameters >= reference.size.attention_parameters) continue;
    const bool lost = loss_of(results.subject, row) - half_width(row) >= allowed;
    Rows& list = keeps_quality(results, reference, row) ? decision.kept : lost ? decision.lost : decision.undecided;
    list.push_back(&row);
  }
  return decision;
}

Rows undecided_rows(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& reference) {
  const Verdicts verdicts = verdicts_of(results.subject, rows);
  Rows undecided = decide(results, rows, reference).undecided;
  for (const VariantRow* row : verdicts.level) {
    const bool known = std::find(undecided.begin(), undecided.end(), row) != undecided.end();
    if (!known && !keeps_quality(results, reference, *row)) undecided.push_back(row);
  }
  for (const VariantRow& row : rows) {
    const bool judged = row.against_reference && row.against_reference->interval();
    if (row.finished() && row.trained() && &row != &reference && !judged) undecided.push_back(&row);
  }
  return undecided;
}

bool means_are_decided(const Results& results, const std::vector<VariantRow>& rows) {
  const VariantRow* reference = reference_row(results, rows);
  return reference != nullptr && reference->best.seeds.size() >= kFewestToJudge &&
         undecided_rows(results, rows, *reference).empty();
}

std::optional<int64_t> seeds_to_decide(const Results& results, const VariantRow& reference, const Rows& undecided,
                                       int64_t most, size_t more_looks) {
  const double confidence = judging_confidence(results.looks.size() + more_looks);
  int64_t needed = 0;
  for (const VariantRow* row : undecided) {
    const double room = std::abs(margin(results, reference) - loss_of(results.subject, *row));
    const auto own = values_needed(*row->against_reference->judged, room, most, confidence);
    if (!own) return std::nullopt;
    needed = std::max(needed, *own);
  }
  return needed;
}

}  // namespace headshare
