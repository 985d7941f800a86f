// The comparison that trains the encoders of a comparison by fine-tuning, where they are not there.
#pragma once

#include "headshare/compare/options.h"

namespace headshare {

// Tells whether the encoders to fine-tune are there already, and not to be trained first.
bool has_encoders(const ComparisonOptions& options);

// Returns the comparison that trains the encoders, one seed each; without el_lossless, which has mha's weights. They
// learn masked tokens, or where there is no vocabulary which tokens were replaced.
ComparisonOptions pre_training(const ComparisonOptions& options);

// Throws Error for options of pre-training where the encoders are there already.
void check_pre_training(const ComparisonOptions& options);

}  // namespace headshare
