// Unseen words are words of a text that its training text does not have; their scores tell how encoders do around them.
#pragma once

#include <string>
#include <vector>

#include "headshare/metrics/score.h"
#include "headshare/tasks/language/evaluate_language.h"
#include "headshare/tasks/masked/window_rows.h"

namespace headshare {

// A ScoredText is a scored part of a text, in disjoint windows of `context`, whose losses are those of every window in
// order.
struct ScoredText {
  const TokenData& tokens;
  const WindowRows& rows;
  int64_t context;
  const WindowLosses& losses;
};

// Returns scores for a tokenizer without a vocabulary, whose ids are words: "unseen-types" and "unseen-words", the
// shares of the distinct and of all ordinary words of `text` that `training` does not have, and "unseen-rows-loss", the
// mean loss per token in the windows that hold one (left out where none does). `how` ends the signatures.
std::vector<Score> unseen_word_scores(const TokenData& training, const ScoredText& text, const std::string& how);

}  // namespace headshare
