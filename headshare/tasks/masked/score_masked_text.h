// This header scores a trained encoder on a text, as `evaluate` reports it.
#pragma once

#include "headshare/tasks/language/score_text.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {

// Returns the loss at masked tokens, and the pseudo-perplexity of the first options.pseudo_tokens.
TextScores score_masked_text(const TextToScore& asked, const MaskedOptions& options);

}  // namespace headshare
