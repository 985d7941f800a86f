#include "headshare/report/statistics/verdicts.h"

#include <algorithm>
#include <cmath>

#include "headshare/report/statistics/comparability.h"

namespace headshare {

std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> made;
  for (const VariantRow* row : rows) made.push_back(row->variant);
  return made;
}

Verdicts verdicts_of(const Subject& subject, const std::vector<VariantRow>& rows) {
  const bool lower = less_is_better(subject);
  Verdicts verdicts;
  for (const VariantRow& row : rows) {
    if (!row.against_reference || !row.trained()) continue;
    const std::optional<Interval> interval = row.against_reference->interval();
    if (!interval) {
      verdicts.unjudged.push_back(&row);
    } else if (interval->low <= 0 && interval->high >= 0) {
      verdicts.level.push_back(&row);
    } else {
      ((interval->low > 0) == lower ? verdicts.worse : verdicts.better).push_back(&row);
    }
  }
  return verdicts;
}

const VariantRow* reference_row(const Results& results, const std::vector<VariantRow>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const VariantRow& row) {
    return row.variant == results.references.quality && row.finished();
  });
  return found == rows.end() ? nullptr : &*found;
}

double margin_share(const Results& results) {
  const auto asked = results.options.find("until-decided");
  return asked != results.options.end() && asked->is_number() && *asked > 0 ? asked->get<double>() : kMargin;
}

double margin(const Results& results, const VariantRow& reference) {
  const double share = margin_share(results);
  return compares_loss(results.subject) ? std::log1p(share) : share * std::abs(reference.best.quality.mean);
}

double loss_of(const Subject& subject, const VariantRow& row) {
  return less_is_better(subject) ? row.against_reference->mean : -row.against_reference->mean;
}

double relative_loss(const Subject& subject, const VariantRow& reference, const VariantRow& row) {
  const double loss = loss_of(subject, row);
  if (compares_loss(subject)) return std::expm1(loss);
  const double whole = std::abs(reference.best.quality.mean);
  return whole > 0 ? loss / whole : 0;
}

double half_width(const VariantRow& row) {
  const Interval interval = *row.against_reference->interval();
  return (interval.high - interval.low) / 2;
}

bool keeps_quality(const Results& results, const VariantRow& reference, const VariantRow& row) {
  return loss_of(results.subject, row) + half_width(row) < margin(results, reference);
}

size_t most_seeds(const std::vector<VariantRow>& rows) {
  size_t most = 0;
  for (const VariantRow& row : rows) most = std::max(most, row.best.seeds.size());
  return most;
}

}  // namespace headshare
