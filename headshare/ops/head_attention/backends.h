// Each backend of head_attention.h has a file; they share these declarations.
#pragma once

#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {

// Computes the formula over whole [T, S] score matrices; takes every problem, on every device and type.
extern const HeadBackend kReferenceBackend;

// The blocked backend takes so many queries at a time: long enough for well-shaped products.
inline constexpr int64_t kQueryBlock = 128;

// Computes the formula over blocks of queries, each against the keys that a causal mask and a window let it reach.
// Under a causal mask this is half the work and memory of the reference. A window W limits it to T (2 W + 128) scores,
// under a causal mask to T (W + 128).
extern const HeadBackend kBlockedBackend;

// These run headshare/kernels on the CPU, in float32 and bfloat16 and O(T + S) memory per head.
extern const HeadBackend kDecodeBackend;
extern const HeadBackend kFactorisedBackend;
extern const HeadBackend kFusedBackend;

// Runs libtorch's scaled_dot_product_attention, where it is fused.
extern const HeadBackend kSdpaBackend;

// Computes heads that differ by a bias only from one score matrix: an oracle in float64 for kernels of that form, on
// every device. It is none of head_backends(), because in float32 it underflows where biases lie far apart, and because
// its maximum over keys looks at keys that a causal mask hides.
extern const HeadBackend kWideBackend;

// Throws an Error unless the shapes, types and devices of the problem and its mask fit each other.
void check_problem(const HeadProblem& problem, const HeadMask& mask);

// Tells whether there is nothing to attend with or to: attend() gives zeros then, without a backend.
bool is_empty(const HeadProblem& problem);

// This is HeadBackend::products of backends that libtorch multiplies for: bfloat16 under autocast and of such tensors.
Precision libtorch_products(const HeadProblem& problem);

// Maps x: [B, g, ...] -> [B, heads, ...], each head repeated heads / g times.
Tensor expand_heads(const Tensor& x, int64_t heads);

// Returns bool [B or 1, 1, T, 1]: which queries see nothing, from live_queries(); undefined when none.
Tensor dead_rows(const Tensor& live);

// Returns bool, broadcastable to [B, 1, T, S]: which keys each query sees; undefined when all of them. `first` is the
// position of the first query among the keys, S - T in a whole problem.
Tensor visible_pairs(const HeadProblem& problem, const HeadMask& mask, int64_t first);

// Returns live_queries() where the first query stands at position `first`.
Tensor live_queries(const HeadProblem& problem, const HeadMask& mask, int64_t first);

// Tells whether the mask's window hides any key: in short problems it does not.
bool has_window(const HeadProblem& problem, const HeadMask& mask);
bool has_window(const HeadProblem& problem, const HeadMask& mask, int64_t first);

// A block is a part of a problem: some of its queries, and the keys that these may see.
struct BlockPlace {
  int64_t first_query = 0;  // position of the block's first query among the block's keys
  int64_t first_key = 0;    // which key of the whole problem the block's first one is
};

// Computes a block by the formula, over its whole score matrix.
Tensor attend_to_block(const HeadProblem& block, const HeadMask& mask, const HeadDropout& dropout,
                       const BlockPlace& place);

}  // namespace headshare
