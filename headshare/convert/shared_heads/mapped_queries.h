// One query and one key map for all heads, and a map of each head on the query: what shared queries hold.
#pragma once

#include <optional>

#include "headshare/attention/schemes/shared_query.h"
#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// Head h has the query map W M_h, with the key map K for all heads.
struct MappedQueries {
  Tensor query = {};  // W: [E, C]
  Tensor maps = {};   // M: [H, C, D]
  Tensor inner = {};  // U of M_h = 1 + U_h B_h, of low rank: [H, D, r]; else undefined
  Tensor outer = {};  // B: [H, r, D]; else undefined
  Tensor key = {};    // K: [F, 1, E, d] as slices
};

// W, M and K that come closest to slices [F, H, E, d]: given the key map, the best query maps of single heads are what
// W M_h has to be close to, and given these the best key map is known; both sides alternate. Of full maps W is a
// truncated singular value decomposition. Maps that multiply what a rotation leaves alone start from a decomposition,
// of which `decomposition` and `progress` are. `map` is any but a bias, which is no matrix.
MappedQueries mapped_queries(const HeadSlices& slices, int64_t width, const SharedQueryOptions& map,
                             const DecompositionOptions& decomposition = {},
                             const DecompositionProgress& progress = nullptr);

// The numbers that a layer stores for maps [H, D, D] of this form: [H, D] or [H, 2, D].
Tensor numbers_of_maps(const Tensor& maps, QueryMap map);

}  // namespace headshare
