// These functions score language models on a text; scores of other models on text share the windows and the line about
// unknown tokens.
#pragma once

#include <optional>
#include <string>

#include "headshare/data/text/windows.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/model_kind.h"
#include "headshare/tasks/language/evaluate_language.h"
#include "headshare/tasks/text_to_score.h"

namespace headshare {

// Returns the windows for a text that allows windows of at most `longest` tokens: as many at once as keep the scores
// below 256 MiB and fit into memory. Throws Error when a batch does not fit.
WindowOptions scoring_windows(const TextToScore& asked, std::optional<int64_t> stride, const ModelOptions& model,
                              int64_t longest);

// Returns `heading` and "4.1% of the tokens are unknown to the tokenizer and easy to predict"; "" where the tokenizer
// knows every token.
std::string unknown_line(const std::string& heading, double share);

// Returns perplexity, and bits per byte where the tokenizer is lossless.
TextScores score_text(const TextToScore& asked, std::optional<int64_t> stride);

}  // namespace headshare
