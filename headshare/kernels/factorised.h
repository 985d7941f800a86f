// Computes the factorised form of attention whose heads differ only by a bias per (head, key), as in MHE-ADD:
//   score_h[i,j] = scale * (q_i . k_j + key_bias_h[j]) - slope_h * (i + S - T - j)
// With P0[i,j] = exp(scale q_i.k_j - m_i), one matrix for all heads, and w_h[j] = exp(what head h adds to key j):
//   out_h[i] = sum_j P0[i,j] w_h[j] v_j / sum_j P0[i,j] w_h[j]
// H + 1 products of width D instead of 2 H, and one exponential instead of H (derivation: docs/kernels.md, reasons:
// docs/design/014-attention-kernels.md).
#pragma once

#include "headshare/kernels/attention.h"

namespace headshare::kernels {

struct FactorisedSizes {
  int64_t B = 1, H = 1, T = 1, S = 1, Dk = 1, Dv = 1;

  // Returns the same problem for the kernels of attention.h.
  AttentionSizes by_head() const { return {B, H, 1, 1, 1, T, S, Dk, Dv}; }
  // Returns the number of blocks of kTileQueries queries.
  int64_t blocks() const;
};

// The backward pass needs this besides inputs and output.
struct FactorisedState {
  // `lse` is [B, H, T], to the base 2, relative to what head h adds to its last reachable key's distance and to m: a
  // large score in it would round away what the backward pass needs. It is relative to nothing where a head was
  // computed on its own.
  float* lse;
  float* m;       // [B, T]: what the exponents of P0 were measured from, to the base 2
  bool* by_head;  // [B, H, blocks]: the maxima of q.k and of the bias lay so far apart that this head of this
                  // block was computed on its own
};

// The shapes are query [B, 1, T, Dk], key [B, 1, S, Dk], value [B, 1, S, Dv], out [B, H, T, Dv]. ALiBi needs `causal`,
// sinks have no place, dropout must be `shared`: it multiplies P0 in the numerator. T, S, B >= 1; hidden keys and
// values are finite. The products that each head takes part in, most of the work, have operands of type `Product`,
// float or Bf16 (then Dv is even), and sums in float; P0, denominators and what all heads share stay float.
template <typename Product>
void factorised_forward(const FactorisedSizes& sizes, const AttentionRule& rule, const AttentionInputs<float>& in,
                        HeadsView<float> out, const FactorisedState& state, const Machine& machine);

template <typename Product>
void factorised_backward(const FactorisedSizes& sizes, const AttentionRule& rule, const AttentionInputs<float>& in,
                         HeadsView<const float> out, const FactorisedState& state, HeadsView<const float> out_gradient,
                         const AttentionGradients<float>& gradients, const Machine& machine);

}  // namespace headshare::kernels
