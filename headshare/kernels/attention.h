// Computes attention over blocks of queries and keys, forward and backward, for any head counts and widths, in O(T + S)
// memory per head: the score matrix exists one tile at a time (Dao et al., 2022).
//   score_h[i,j] = scale * (q_{h,i} . k_j + key_bias_h[j]) - slope_h * |i + S - T - j|
//   out_h[i] = sum_j dropout(softmax_j(score_h[i,j])) v_j
// With a sink, softmax runs over one more key, whose score is sink_h in every row and whose value is 0.
// Letters as in headshare/base/dims.h; head h reads head h / (H / count) of a tensor with `count` heads.
#pragma once

#include <cstdint>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/dropout_mask.h"
#include "headshare/kernels/gemm.h"
#include "headshare/kernels/parallel.h"
#include "headshare/kernels/scratch.h"

namespace headshare::kernels {

// This is a tensor [B, heads, rows, width] with the distances between sentences, heads and rows; a row is contiguous.
template <typename T>
struct HeadsView {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;

  T* at(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

struct AttentionSizes {
  int64_t B = 1, H = 1, Hq = 1, Hk = 1, Hv = 1, T = 1, S = 1, Dk = 1, Dv = 1;
};

struct AttentionRule {
  float scale = 1;
  bool causal = false;                  // query i sees key j when j <= i + S - T
  const bool* visible_keys = nullptr;   // [B, S]; null: all
  const float* key_bias = nullptr;      // [B, H, S]; null: zero
  const float* alibi_slopes = nullptr;  // [H]; null: zero
  const float* sinks = nullptr;         // [H]; null: there is none
  DropoutMask dropout = {};
};

template <typename T>
struct AttentionInputs {
  HeadsView<const T> query;  // [B, Hq, T, Dk]
  HeadsView<const T> key;    // [B, Hk, S, Dk]
  HeadsView<const T> value;  // [B, Hv, S, Dv]
};

template <typename T>
struct AttentionGradients {
  HeadsView<T> query, key, value;  // shaped as the inputs; overwritten
  float* key_bias = nullptr;       // [B, H, S], overwritten; null: not wanted
};

// A machine does the arithmetic: a matrix product, threads and memory.
struct Machine {
  const TileGemm* gemm;
  Parallel parallel;
  Allocate allocate = allocate_plain;
};

// Computes `out` and `lse`. T is float or Bf16; with Bf16 both widths must be even. T, S, B >= 1. Hidden keys and
// values must be finite. out [B, H, T, Dv] is zero where a query sees no key. lse [B, H, T] is the logarithm to the
// base 2 of the softmax's denominator, its sink included, plus infinity where a query sees no key; backward needs it.
template <typename T>
void attention_forward(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
                       HeadsView<T> out, float* lse, const Machine& machine);

// Attends from a few new queries to a cache, without dropout: keys and values are read once for all queries and heads
// that share them, and the keys are split among the threads. Several queries, T > 1, are the beams of a sentence: no
// causal mask and no ALiBi orders them.
template <typename T>
void attention_decode(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
                      HeadsView<T> out, const Machine& machine);

// Computes the gradients, the same for any number of threads up to how partial sums of gradients are grouped: equal
// bits for equal machine.parallel.threads.
template <typename T>
void attention_backward(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
                        HeadsView<const T> out, const float* lse, HeadsView<const T> out_gradient,
                        const AttentionGradients<T>& gradients, const Machine& machine);

}  // namespace headshare::kernels
