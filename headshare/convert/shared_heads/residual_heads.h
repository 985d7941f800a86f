// One map for all heads, and a residual of low rank for each: what LRKV holds.
#pragma once

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// Head h has the map W + U_h B_h.
struct ResidualHeads {
  Tensor shared;  // W: [E, D]
  Tensor inner;   // U: [H, E, r]
  Tensor outer;   // B: [H, r, D]

  Tensor heads() const;  // [H, E, D]
};

// The key maps that do best where query maps follow: P_h = Q_h (W + U_h B_h)^H for slices [F, H, E, d] with F 1, or
// complex ones, one column wide, of F = D / 2 frequencies. Three starts (the heads' common directions, their mean, and
// their mean after alignment) are improved by alternating least squares, each step of which has a closed form; the best
// result is kept. It is exact at r = D.
ResidualHeads residual_heads(const HeadSlices& slices, int64_t width, int64_t rank);

}  // namespace headshare
