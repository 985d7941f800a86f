// The backends of head_attention.h, one file each.
#pragma once

#include "headshare/ops/head_attention.h"

namespace headshare {

// The formula over whole [T, S] score matrices; takes every problem, on every device and type.
extern const HeadBackend kReferenceBackend;

// The formula over blocks of queries, each against the keys its causal mask can reach: half the
// work and memory of the reference under a causal mask.
extern const HeadBackend kBlockedBackend;

// libtorch's fused scaled_dot_product_attention, where it is fused.
extern const HeadBackend kSdpaBackend;

// x: [B, g, ...] -> [B, heads, ...], each head repeated heads / g times.
Tensor expand_heads(const Tensor& x, int64_t heads);

// bool, broadcastable to [B, 1, T, S]: which keys each query sees; undefined when all of them.
Tensor visible_pairs(const HeadProblem& problem, const HeadMask& mask);

}  // namespace headshare
