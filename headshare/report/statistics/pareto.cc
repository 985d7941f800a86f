#include "headshare/report/statistics/pareto.h"

#include <algorithm>

namespace headshare {

namespace {

// Returns the quality of a variant's weights. A variant that was not trained by itself is as good as what it was made
// of; measured again it differs by rounding.
double quality_of_weights(const std::vector<VariantRow>& rows, const VariantRow& row) {
  for (const VariantRow& other : rows) {
    if (other.variant == row.weights_of && other.finished()) return other.best.quality.mean;
  }
  return row.best.quality.mean;
}

}  // namespace

Rows rows_by_cost(const std::vector<VariantRow>& rows, const RowCost& cost) {
  Rows made;
  for (const VariantRow& row : rows) {
    if (row.finished() && cost(row) > 0) made.push_back(&row);
  }
  std::stable_sort(made.begin(), made.end(),
                   [&](const VariantRow* a, const VariantRow* b) { return cost(*a) < cost(*b); });
  return made;
}

Rows pareto_frontier(const Subject& subject, const std::vector<VariantRow>& rows, const RowCost& cost) {
  const double sign = subject.direction == Direction::kLowerIsBetter ? -1 : 1;
  const auto quality = [&](const VariantRow& row) { return sign * quality_of_weights(rows, row); };
  Rows frontier = rows_by_cost(rows, cost);
  const Rows all = frontier;
  std::erase_if(frontier, [&](const VariantRow* row) {
    return std::any_of(all.begin(), all.end(), [&](const VariantRow* other) {
      const bool no_worse = cost(*other) <= cost(*row) && quality(*other) >= quality(*row);
      return no_worse && (cost(*other) < cost(*row) || quality(*other) > quality(*row));
    });
  });
  return frontier;
}

}  // namespace headshare
