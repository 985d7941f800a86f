// The encoders of a comparison by fine-tuning come from a comparison of their own, which trains them where there are
// none.
#pragma once

#include "headshare/compare/options.h"

namespace headshare {

// Tells whether the encoders to fine-tune are given and need no training first.
bool has_encoders(const ComparisonOptions& options);

// Returns the comparison that trains the encoders, one for each seed. It leaves out el_lossless, which has mha's
// weights. Encoders learn masked tokens or, where there is no vocabulary, which tokens were replaced.
ComparisonOptions pre_training(const ComparisonOptions& options);

// Throws Error for options of pre-training where the encoders are given.
void check_pre_training(const ComparisonOptions& options);

}  // namespace headshare
