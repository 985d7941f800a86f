// This header splits the text of a run into its three parts.
#pragma once

#include <cstdint>
#include <string>

#include "headshare/data/text/token_cache.h"

namespace headshare {

struct TextSplits {
  TokenData train;
  TokenData validation;  // empty when neither a file nor a fraction is given
  TokenData test;        // empty when neither a file nor a fraction is given
};

// Cuts tokens in contiguous parts: training first, then validation, then test. With n tokens the
// parts end at floor(n * (1 - validation - test)), floor(n * (1 - test)) and n, as nanoGPT cuts its
// text. Throws Error when the fractions are not within 0 and 1 or leave nothing to train on.
TextSplits split_tokens(const TokenData& tokens, double validation_fraction, double test_fraction,
                        const Tokenizer& tokenizer);

// Opens the texts that the options name. A part with its own files uses these, any other part is
// cut from `text`. Without `text` the training part is empty (for evaluation only). Throws Error
// when no text is named at all, or a file is named for two parts.
TextSplits open_splits(const DataOptions& options, const Tokenizer& tokenizer, const Progress& progress = {});

// Throws Error, with both numbers and the way out, when `tokens` has fewer than context + 1 tokens:
// no window fits. `part` is what the message calls it ("training", "validation").
void check_long_enough(const TokenData& tokens, int64_t context, const std::string& part);

}  // namespace headshare
