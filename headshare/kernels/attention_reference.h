// Computes the formula of attention.h loop by loop: in double to prove the fast kernels against, in float, with or
// without rounding to bf16, as the plain form whose error says how large theirs may be.
#pragma once

#include <vector>

#include "headshare/kernels/attention.h"

namespace headshare::kernels {

// This says how each matrix of the formula is kept before the next is computed from it: scores, weights, results, and
// their gradients.
enum class Kept { kAsComputed, kBf16 };

template <class Real>
struct ReferenceResult {
  std::vector<Real> out;      // [B, H, T, Dv]
  std::vector<Real> weights;  // [B, H, T, S], before dropout
};

// The inputs are those of attention_forward; dropout is the same mask. Real is double or float.
template <class Real>
ReferenceResult<Real> reference_forward(const AttentionSizes& sizes, const AttentionRule& rule,
                                        const AttentionInputs<float>& in, Kept kept = Kept::kAsComputed);

template <class Real>
struct ReferenceGradients {
  std::vector<Real> query, key, value;  // dense, shaped as the inputs
  std::vector<Real> key_bias;           // [B, H, S]
};

template <class Real>
ReferenceGradients<Real> reference_backward(const AttentionSizes& sizes, const AttentionRule& rule,
                                            const AttentionInputs<float>& in, HeadsView<const float> out_gradient,
                                            Kept kept = Kept::kAsComputed);

}  // namespace headshare::kernels
