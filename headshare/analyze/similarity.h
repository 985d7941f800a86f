// This header tells how alike the heads of a layer are: by their weights, and by where they look.
#pragma once

#include "headshare/attention/attention.h"
#include "headshare/convert/collaborative/decomposition.h"
#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns the cosine of P_h and P_g, <P_h, P_g> / (|P_h| |P_g|) with the Frobenius product, from thin factors. Another
// basis within a head changes nothing. A head of zeros is like none: 0, and 1 to itself.
HeadSimilarity weight_similarity(const HeadSlices& slices);

// Returns the attention weights [B, H, T, S] of an attention layer that reads x [B, T, E].
Tensor attention_weights(const Attention& attention, const Tensor& x, const HeadMask& mask);

// This class compares where heads look, over the tokens of a text.
class MapSimilarity {
 public:
  // Adds weights [B, H, T, S], rows that sum to 1; the queries before `first` are left out.
  void add(const Tensor& weights, int64_t first);

  // Returns 1 - the mean Jensen-Shannon divergence of two heads' attention in bits (Clark et al., 2019): 1 where both
  // always look alike, 0 where they never look at the same token. Needs at least one query.
  HeadSimilarity similarity() const;

 private:
  Tensor divergences_;  // sums over queries, in bits: double [H, H]
  int64_t queries_ = 0;
};

}  // namespace headshare
