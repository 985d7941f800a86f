// One map for each head's keys and values: what SKV holds.
#pragma once

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// W [H, E or E + 1, D] of each head that does best as its key map and its value map, both as shares of their own energy
// over all heads. `scores` [F, H, E, d] and `values` [1, H, E, Dv] (output maps for queries, value maps for keys) are
// weighed alike. Complex scores, with rotary positions, are F = D / 2 problems one column wide: their pairs of columns
// are (f, F + f) of W, found by alternating least squares; else W is a truncated singular value decomposition. Scores
// may end with a row more, of biases, and W then ends with one too: what it gives values is constant, which output
// biases take up.
Tensor tied_maps(const HeadSlices& scores, const HeadSlices& values, int64_t width);

}  // namespace headshare
