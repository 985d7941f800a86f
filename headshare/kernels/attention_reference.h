// The formula of attention.h in double, loop by loop: what the fast kernels are proved against.
#pragma once

#include <vector>

#include "headshare/kernels/attention.h"

namespace headshare::kernels {

struct ReferenceResult {
  std::vector<double> out;      // [B, H, T, Dv]
  std::vector<double> weights;  // [B, H, T, S], before dropout
};

// Inputs as for attention_forward; dropout is the same mask.
ReferenceResult reference_forward(const AttentionSizes& sizes, const AttentionRule& rule,
                                  const AttentionInputs<float>& in);

struct ReferenceGradients {
  std::vector<double> query, key, value;  // dense, shaped as the inputs
  std::vector<double> key_bias;           // [B, H, S]
};

ReferenceGradients reference_backward(const AttentionSizes& sizes, const AttentionRule& rule,
                                      const AttentionInputs<float>& in, HeadsView<const float> out_gradient);

}  // namespace headshare::kernels
