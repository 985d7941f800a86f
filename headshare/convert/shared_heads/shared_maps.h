// One key map for a group of heads in place of their own, whose query maps follow. Values and output maps are the same
// problem: a head's V_h O_h has the value map for its key map (docs/mathematics.md#shared-heads).
#pragma once

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// Divisors that are squares of 0 count as this number. Its products with ridges are still normal numbers.
inline constexpr double kLeastSize = 1e-280;

// P_h = Q_h K_g^H, approximately, where head h of H is in group g = h / (H / G).
struct SharedMaps {
  Tensor query;  // [F, H, E, r]
  Tensor key;    // [F, G, E, r]
};

enum class Pooling {
  kMean,     // the mean of the heads' key maps, as they are (Ainslie et al., 2023)
  kAligned,  // the mean after each head has taken the basis in which it is most like the others, which changes none
  kLeastSquares,  // the maps, query maps included, with the least error: a truncated singular value decomposition
};

// The maps of `groups` groups of neighbouring heads; H is a multiple of `groups`. `rank`, r: the width of the shared
// maps; of means it is the heads' own, d.
SharedMaps pooled(const HeadSlices& heads, int64_t groups, int64_t rank, Pooling how);

// Each head with its group's key map.
HeadSlices expanded(const SharedMaps& maps);

// |P - P'| / |P| over all slices, for heads of any widths; 0 where P is 0 and P' too. Below 1e-7 little is left of it.
double relative_change(const HeadSlices& before, const HeadSlices& after);

// X with S X = b, where S [.., d, d] is Hermitian, without negative directions and perhaps singular.
Tensor solved(const Tensor& square, const Tensor& right);

// C with W C close to the maps: W [.., E, r], maps [.., E, d] -> [.., r, d]. Columns of 0 have no part.
Tensor coefficients(const Tensor& w, const Tensor& maps);

// The query maps that do best with the key maps `key` [F, H, E, r].
Tensor best_queries(const HeadSlices& heads, const Tensor& key);

// Z [.., E, n] with Z Z^H = sum of P_h^H P_h over `heads` heads of width d at a time: [F, H / heads, E, heads d].
Tensor key_directions(const HeadSlices& slices, int64_t heads);

// L with L L^H = x^H x: [.., d, d], whatever the rank of x [.., E, d].
Tensor gram_root(const Tensor& x);

// The first `rank` left singular vectors of Z [.., E, n], those of singular value 0 as columns of 0: [.., E, rank].
Tensor leading_directions(const Tensor& z, int64_t rank);

// The factors [F, G, r] that make a key map's columns, multiplied, as long as those of its group's query maps are on
// average, divided: both learn alike then.
Tensor balancing_factors(const SharedMaps& maps);

// sum |P_h|^2 over all slices.
double energy(const HeadSlices& heads);

// Scaled so that the energy of all heads is 1.
HeadSlices normalised(const HeadSlices& slices);

}  // namespace headshare
