// One query and one key map for all heads, each of which adds a constant to both: what MHE-ADD holds.
#pragma once

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

struct AddedHeads {
  Tensor query;           // A: [F, E, d]
  Tensor key;             // B: [F, E, d]
  Tensor query_constant;  // a: [F, H, d]
  Tensor key_constant;    // b: [F, H, d]; undefined where keys have none
};

// The maps and constants that come closest to each head's (x A_h + a_h) . (y B_h + b_h), x and y of mean 0, by
// alternating least squares from the best common map. A side whose slices have a row more than its map, `query_rows` or
// `key_rows`, has constants, which are the last one: query [F, H, E + 1, d], key [F, H, E or E + 1, d].
AddedHeads added_heads(const HeadSlices& slices, int64_t query_rows, int64_t key_rows);

}  // namespace headshare
