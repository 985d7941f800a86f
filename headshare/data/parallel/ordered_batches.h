// These batches hold sentences of like length together, for evaluation and translation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

// Groups the places 0 .. lengths.size() - 1 into batches: longest first, so that memory that suffices for the first
// batch suffices for all, and equal lengths in their order. A batch of n places whose longest has L tokens has n * L <=
// tokens, and at most `most` places; a place with more tokens than that is a batch of its own. Every place is in one
// batch: results in the order of the batches belong to these places of the original order. Throws Error for a length
// below 0, and for `tokens` or `most` below 1.
std::vector<std::vector<int64_t>> ordered_batches(std::span<const int64_t> lengths, int64_t tokens,
                                                  int64_t most = INT64_MAX);

}  // namespace headshare
