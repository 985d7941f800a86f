// Finds what quality costs: the variants that no other one beats in both.
#pragma once

#include <functional>

#include "headshare/report/statistics/verdicts.h"

namespace headshare {

using RowCost = std::function<double(const VariantRow&)>;

// The finished variants with a cost above 0, the cheapest first.
Rows rows_by_cost(const std::vector<VariantRow>& rows, const RowCost& cost);

// Lists the variants for which no other has at most their cost and at least their mean quality, one of them better.
// Variants that agree in both are all on it. Cheapest first, so that quality rises along it.
Rows pareto_frontier(const Subject& subject, const std::vector<VariantRow>& rows, const RowCost& cost);

}  // namespace headshare
