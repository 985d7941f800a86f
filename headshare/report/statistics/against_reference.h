// The seeds of a variant are compared with those of a reference: differences, PRR and PEoP. Seeds are paired, and only
// seeds that both have count.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/seed_columns.h"
#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

// Fills in against_reference, which judge_together() completes, or why_no_difference.
void compare_with_reference(VariantRow* row, const Results& results, const Cells& ours, const Cells& theirs);

// Judges the differences of all trained variants together, after so many looks.
void judge_together(const std::vector<int64_t>& looks, std::vector<VariantRow>* rows);

// `reference` is the name of the reference, for messages.
Retention prr_of(const Results& results, const Cells& ours, const Cells& theirs, const std::string& reference);
Retention peop_of(const Results& results, const Cells& ours, const Cells& theirs);

}  // namespace headshare
