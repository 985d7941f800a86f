// A block of every transformer: attention and a feed-forward part, each added to what it read.
#pragma once

#include <memory>

#include "headshare/attention/attention.h"
#include "headshare/models/options.h"

namespace headshare {

Tensor activate(ActivationKind kind, const Tensor& x);

// x -> W2 act(W1 x).
class FeedForwardImpl : public Layer {
 public:
  explicit FeedForwardImpl(const TransformerOptions& resolved);
  Tensor forward(const Tensor& x) const;  // [B, T, E] -> [B, T, E]

 private:
  ActivationKind activation_;
  Linear expand_, contract_;
};
TORCH_MODULE(FeedForward);

// Norms before (GPT-2): x + attention(norm(x)), then x + feed_forward(norm(x)).
// Norms after (BERT):   norm(x + attention(x)), then norm(x + feed_forward(x)).
class BlockImpl : public Layer {
 public:
  BlockImpl(const TransformerOptions& resolved, NormPlacement norms);
  Tensor forward(const Tensor& x, const HeadMask& mask, KvCache* cache) const;  // [B, T, E] -> [B, T, E]

  // The same at some places only, int64 [N] among the B T: [B, T, E] -> [N, E]. All that follows attention is done
  // for these alone.
  Tensor forward_at(const Tensor& places, const Tensor& x, const HeadMask& mask) const;

  Attention attention;

 private:
  Tensor attended(const Tensor& x, const HeadMask& mask, KvCache* cache) const;
  Tensor after_attention(const Tensor& x, const Tensor& attended) const;
  Tensor normed_input(const LayerNorm& norm, const Tensor& x) const;
  Tensor normed_sum(const LayerNorm& norm, const Tensor& sum) const;

  NormPlacement norms_;
  double dropout_;
  LayerNorm attention_norm_, feed_forward_norm_;
  FeedForward feed_forward_;
  // Dropout sites: separate layers, so that each has its own stream.
  std::shared_ptr<Layer> attention_residual_, feed_forward_residual_;
};
TORCH_MODULE(Block);

}  // namespace headshare
