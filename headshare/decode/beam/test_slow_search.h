// For tests only, this is beam search written plainly, from the rules of transformers, with whole sequences and full
// sorts.
#pragma once

#include "headshare/decode/beam/search_request.h"
#include "headshare/decode/beam/test_model.h"

namespace headshare {

// Returns the n-best of one sentence. `scores` is called with all tokens that a hypothesis has fed.
std::vector<Hypothesis> slow_search(const SearchRequest& request, size_t sentence, int64_t vocabulary,
                                    const HistoryScores& scores);

}  // namespace headshare
