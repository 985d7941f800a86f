// The scores of a layer on a text show how alike its heads are where no product of weights does
// (docs/mathematics.md#redundancy-of-heads).
#pragma once

#include "headshare/attention/scheme.h"
#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// Let Q_h and K_h [N, D] be what head h compares for N tokens of a text: queries and keys after their norms, before
// positions turn them. Its scores are Q_h K_h^T, every token's query with every token's key. They are never formed.
class SeenScores {
 public:
  // Adds the tokens x [B, T, E] that a layer of this scheme read.
  void add(const Scheme& scheme, const Tensor& x);

  // Returns factors A_h, B_h with few rows: A_h B_h^H has the singular values of Q_h K_h^T / N, and the products of two
  // heads' are theirs as well. [F, H, n, d], a complex problem for each rotary frequency, as HeadSlices has them of
  // weights. Without rotary positions keys count about their mean, which softmax deletes. Needs at least one token.
  HeadSlices slices() const;

 private:
  // Sums over tokens of one side's vectors z, [F, H d] together.
  struct Side {
    Tensor sum, squares;  // of z: [F, H d]; of z^H z: [F, H d, H d]

    void add(const Tensor& z);  // [F, H, N, d]
    Tensor root(int64_t tokens, int64_t heads, bool about_mean) const;
  };

  Side query_, key_;
  int64_t tokens_ = 0, heads_ = 0;
};

}  // namespace headshare
