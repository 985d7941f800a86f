// Searches translations of a batch of sentences: beam search, greedy search and sampling.
#pragma once

#include <vector>

#include "headshare/decode/beam/search_request.h"
#include "headshare/decode/beam/step_scores.h"

namespace headshare {

// Searches all sentences of the request together; sentences leave the batch as they end. Returns the n-best of each,
// the best first; at least one. A sentence has fewer than n where its rules allow fewer. A sentence's result does not
// depend on the other sentences, provided that the model's scores do not.
//
// The rules are those of transformers 5.23; SentenceSearch names the differences. `model` has sentences x beam rows.
// Throws Error for options out of range, tokens outside the vocabulary, scores of another shape, and scores that are
// NaN or +infinity. What the model throws passes through.
std::vector<std::vector<Hypothesis>> beam_search(StepScores& model, const SearchRequest& request);

}  // namespace headshare
