// A block of every transformer: attention and a feed-forward part, each added to what it read.
#pragma once

#include <memory>

#include "headshare/attention/attention.h"
#include "headshare/models/feed_forward.h"
#include "headshare/ops/norm.h"

namespace headshare {

// A norm over the model width, of the kind that all of a model's norms are.
Norm block_norm(const TransformerOptions& resolved);

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
  Tensor normed_input(const Norm& norm, const Tensor& x) const;
  Tensor normed_sum(const Norm& norm, const Tensor& sum) const;

  NormPlacement norms_;
  double dropout_;
  Norm attention_norm_, feed_forward_norm_;
  FeedForward feed_forward_;
  // Dropout sites: separate layers, so that each has its own stream.
  std::shared_ptr<Layer> attention_residual_, feed_forward_residual_;
};
TORCH_MODULE(Block);

}  // namespace headshare
