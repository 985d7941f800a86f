// The feed-forward sub-layer of a block has one interface and a file for each kind.
#pragma once

#include <memory>

#include "headshare/models/blocks/options.h"
#include "headshare/ops/linear.h"

namespace headshare {

class FeedForwardLayer : public Layer {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;  // [B, T, E] -> [B, T, E]
};
using FeedForward = std::shared_ptr<FeedForwardLayer>;

FeedForward make_feed_forward(const TransformerOptions& resolved);

// Makes W2 act(W1 x) with the projections `expand` and `contract`.
FeedForward make_plain_feed_forward(const TransformerOptions& resolved);

// Makes W2 (act(W0 x) * W1 x), with SiLU or GELU in either form: SwiGLU and GEGLU (Shazeer, 2020); the projections are
// `gate`, `expand` and `contract`.
FeedForward make_gated_feed_forward(const TransformerOptions& resolved);

Tensor activate(ActivationKind kind, const Tensor& x);

// Returns the inner width F where none is set: 4 E; for a gated sub-layer, which has three matrices, the multiple of 8
// next to 8 E / 3, so that it has as many parameters.
int64_t default_feed_forward_width(FeedForwardKind kind, int64_t d_model);

// FeedForwardValues count the values of one token, for estimates of memory.
struct FeedForwardValues {
  double kept = 0;     // kept for the backward pass
  double passing = 0;  // held at once in a forward pass
};
FeedForwardValues feed_forward_values(const TransformerOptions& resolved, bool bf16);

// These projections serve all kinds; each kind registers them in its layer under the names above.
Linear feed_forward_expansion(const TransformerOptions& resolved);
Linear feed_forward_contraction(const TransformerOptions& resolved);

}  // namespace headshare
