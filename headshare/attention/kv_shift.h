// A key and a value may meet those of the token before (docs/mathematics.md#shifts), so that one layer can find what
// followed an earlier token.
#pragma once

#include <memory>

#include "headshare/ops/layer.h"

namespace headshare {

// This is the shift of keys and values (Xu et al., 2024, arXiv:2411.19574): a head of either mixes a token and the one
// before, k'_j = a k_j + (c - a) k_{j-1}, by two numbers of its own. a starts with the mean and the variance of a
// uniform draw from 0 .. 1, and c from 1.
class KvShiftImpl : public Layer {
 public:
  KvShiftImpl(int64_t key_heads, int64_t value_heads);

  // Mixes keys [B, heads, S, width], or values, of a whole sequence. The first token, and one after padding, has none
  // before: 0. `visible_keys` [B, S] is undefined where there is no padding.
  Tensor keys(const Tensor& x, const Tensor& visible_keys) const;
  Tensor values(const Tensor& x, const Tensor& visible_keys) const;

  int64_t key_heads() const { return key_share_.size(0); }
  int64_t value_heads() const { return value_share_.size(0); }

 private:
  Tensor key_share_, key_sum_;      // a, c: [key heads]
  Tensor value_share_, value_sum_;  // [value heads]
};
using KvShift = std::shared_ptr<KvShiftImpl>;

// Returns keys [B, heads, S, width] whose first `still` dimensions are those of the token before (the partial key
// offset of modded-nanogpt, 2025). The first token, and one after padding, keeps its own.
Tensor offset_keys(const Tensor& keys, int64_t still, const Tensor& visible_keys);

}  // namespace headshare
