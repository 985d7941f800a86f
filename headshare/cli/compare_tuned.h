// compare --task glue, superglue, squad, classify, pair, regress: encoders of every scheme, fine-tuned.
#pragma once

#include "headshare/cli/compare_run.h"

namespace headshare {

// As compare_trained; without --encoders these are pre-trained first, into OUT/encoders, once the tasks' data was read
// and found in order.
Results compare_tuned(CompareCommand& command, const std::string& line);

// What would be fine-tuned, for --dry-run: below the sizes of the encoders, which are shown where these exist already.
std::string tuned_plan_text(const ComparisonOptions& options);

// Throws UsageError for options that this comparison would ignore, and for rates and tasks that do not exist.
void check_tuned_options(const ComparisonOptions& options);

}  // namespace headshare
