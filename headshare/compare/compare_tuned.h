// A comparison of encoders that are fine-tuned: --task glue, superglue, squad, classify, pair, regress.
#pragma once

#include "headshare/compare/comparison_call.h"

namespace headshare {

// As compare_trained; without encoders these are pre-trained first, into OUT/encoders, once the tasks' data was read
// and found in order.
Results compare_tuned(ComparisonCall& call, ComparisonHost& host);

// As forecast_trained. Without encoders, of their pre-training and of fine-tuning one untrained encoder on every task.
Forecast forecast_tuned(ComparisonCall call, ComparisonHost& host);

// Whether the encoders to fine-tune are there already, and not to be trained first.
bool has_encoders(const ComparisonOptions& options);

// Throws Error for options of pre-training where the encoders are there already.
void check_pre_training(const ComparisonOptions& options);

// The encoders that are there and would be fine-tuned, each by its variant's name, as fine-tuning begins with it.
std::vector<std::pair<std::string, ModelOptions>> encoders_to_tune(const ComparisonOptions& options);

}  // namespace headshare
