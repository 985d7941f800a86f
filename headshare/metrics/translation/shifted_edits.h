// Computes TER's distance of two word sequences, as Tercom and sacreBLEU search it.
#pragma once

#include <cstdint>
#include <vector>

namespace headshare {

// Returns the number of edits (words inserted, deleted or replaced, runs of words shifted) that turn `words` into
// `reference`. The search is greedy, within Tercom's limits: runs of up to 10 words, shifts by up to 50 places, edits
// near the diagonal; and within sacreBLEU's of 1000 shifts tried. Words are given by number. Memory grows with the sum
// of both lengths.
int64_t shifted_edits(const std::vector<uint32_t>& words, const std::vector<uint32_t>& reference);

}  // namespace headshare
