// One query and one key map for all heads, each of which multiplies every dimension by a number of its own, before
// rotary positions turn: what MHE-MUL holds.
#pragma once

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// A pair of dimensions is a complex number, of which a head multiplies the real and the imaginary part by a number
// each; the two numbers are a complex one here, too.
struct MultipliedHeads {
  Tensor query, key;                  // [F, E]
  Tensor query_factors, key_factors;  // [F, H]
};

// The maps and factors closest to P_h = a_h b_h^H, for complex slices one column wide ([F, H, E, 1], a problem per
// frequency), by alternating least squares: given one side, the other side's real and imaginary parts are each a matrix
// of heads by inputs, of which the best approximation of rank one is known.
MultipliedHeads multiplied_heads(const HeadSlices& slices);

}  // namespace headshare
