// Decides which variants are better, worse or as good as the reference, as far as the seeds can say
// (docs/design/025-judging-differences.md).
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

using Rows = std::vector<const VariantRow*>;

std::vector<std::string> names_of(const Rows& rows);

// The margin is a loss in quality that does not matter: this share of the reference's measure, or what the comparison
// was asked to decide (--until-decided).
constexpr double kMargin = 0.02;
double margin_share(const Results& results);

// Verdicts hold the trained variants beside the reference, by where the interval of their difference lies. With fewer
// than kFewestToJudge seeds all are unjudged: how a model starts moves its quality more than which part of the text is
// scored.
struct Verdicts {
  Rows better, level, worse;  // level: not significantly different
  Rows unjudged;

  size_t judged() const { return better.size() + level.size() + worse.size(); }
};

Verdicts verdicts_of(const Subject& subject, const std::vector<VariantRow>& rows);

// Returns the finished row of the variant that the others are measured against; null without it.
const VariantRow* reference_row(const Results& results, const std::vector<VariantRow>& rows);

// Returns the margin in the number that variants are compared by: a perplexity grows by a share where its loss grows by
// the logarithm.
double margin(const Results& results, const VariantRow& reference);

// Returns how much worse than the reference a variant is, in the compared number; negative where it is better.
double loss_of(const Subject& subject, const VariantRow& row);

// Returns the same as a share of the reference's measure: 0.05 for a perplexity that is 5% higher.
double relative_loss(const Subject& subject, const VariantRow& reference, const VariantRow& row);

// Returns how far the interval of a judged variant's difference reaches to either side.
double half_width(const VariantRow& row);

// Tells whether the whole interval of a judged variant lies within the margin.
bool keeps_quality(const Results& results, const VariantRow& reference, const VariantRow& row);

// Returns the most seeds that any variant has finished.
size_t most_seeds(const std::vector<VariantRow>& rows);

}  // namespace headshare
