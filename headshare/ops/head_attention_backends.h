// Each backend of head_attention.h has a file; they share these declarations.
#pragma once

#include "headshare/ops/head_attention.h"

namespace headshare {

// Computes the formula over whole [T, S] score matrices; takes every problem, on every device and type.
extern const HeadBackend kReferenceBackend;

// Computes the formula over blocks of queries, each against the keys its causal mask can reach: half the work and
// memory of the reference under a causal mask.
extern const HeadBackend kBlockedBackend;

// These run headshare/kernels on the CPU, in float32 and bfloat16 and O(T + S) memory per head.
extern const HeadBackend kDecodeBackend;
extern const HeadBackend kFactorisedBackend;
extern const HeadBackend kFusedBackend;

// Runs libtorch's scaled_dot_product_attention, where it is fused.
extern const HeadBackend kSdpaBackend;

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

// Returns bool, broadcastable to [B, 1, T, S]: which keys each query sees; undefined when all of them.
Tensor visible_pairs(const HeadProblem& problem, const HeadMask& mask);

}  // namespace headshare
