// Draws the mask of dropout on attention weights as every backend does (headshare/kernels/dropout_mask.h).
#pragma once

#include "headshare/kernels/dropout_mask.h"
#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {

// Returns the mask; its threshold is 0 when dropout is not active.
kernels::DropoutMask dropout_mask_of(const HeadDropout& dropout);

// Weights may be a part of a whole mask, whose first row and column have these numbers in the whole.
struct MaskPart {
  int64_t first_query = 0;
  int64_t first_key = 0;
};

// Returns the factors of [B, H, T, S] weights: 1 / (1 - p) or 0, [B, H or 1 when shared, T, S], on
// the weights' device.
Tensor dropout_factors(const HeadDropout& dropout, int64_t heads, const Tensor& weights, const MaskPart& part);

}  // namespace headshare
