// A block is what every transformer repeats: attention, in decoders of a translation attention to the source, and a
// feed-forward sub-layer, each added to what it read.
#pragma once

#include <memory>
#include <optional>

#include "headshare/attention/attention.h"
#include "headshare/models/blocks/feed_forward.h"
#include "headshare/ops/norm.h"

namespace headshare {

// Makes a norm over the model width, of the kind that all of a model's norms are.
Norm block_norm(const TransformerOptions& resolved);

// Makes the same kind of norm over the width of the embedding.
Norm embedding_norm(const TransformerOptions& resolved);

// A block's cross-attention reads a CrossInput.
struct CrossInput {
  Tensor memory;             // [By, S, E], where B is a multiple of By (beams of a sentence)
  Tensor visible_keys = {};  // bool [By, S], false for padding; undefined: no padding
  KvCache* cache = nullptr;  // with a cache, the memory is projected once and not read again
};

// A block norms before its sub-layers or after them.
//   Norms before (GPT-2): x + attention(norm(x)), then x + feed_forward(norm(x)).
//   Norms after (BERT):   norm(x + attention(x)), then norm(x + feed_forward(x)).
//   Norms before except first (the first block of ModernBERT): x + attention(x), then as norms before.
// Cross-attention, where there is one, stands between the two in the same way (Vaswani et al., section 3.1).
class BlockImpl : public Layer {
 public:
  // `cross` are the resolved options of the block's cross-attention; without them it has none.
  BlockImpl(const TransformerOptions& resolved, std::optional<AttentionOptions> cross = {});

  // Runs the block: [B, T, E] -> [B, T, E]. Throws Error when `cross` is given and the block has no cross-attention, or
  // the reverse. `lent` is that of AttentionImpl::self().
  Tensor forward(const Tensor& x, const HeadMask& mask, KvCache* cache, const CrossInput* cross = nullptr,
                 Memory* lent = nullptr) const;

  // Gives the result of forward() at some positions only, `places` int64 [N] among the B T: [B, T, E] -> [N, E].
  // Everything that follows attention is computed for these alone. Throws Error for a block with cross-attention.
  Tensor forward_at(const Tensor& places, const Tensor& x, const HeadMask& mask, Memory* lent = nullptr) const;

  Attention attention;
  Attention cross_attention{nullptr};  // empty in a block without cross-attention

 private:
  Tensor attended(const Tensor& x, const HeadMask& mask, KvCache* cache, Memory* lent) const;
  Tensor with_cross(const Tensor& x, const CrossInput& cross) const;
  Tensor with_feed_forward(const Tensor& x) const;
  template <class SubLayer>
  Tensor of_normed(const Norm& norm, const Tensor& x, const SubLayer& sub_layer, const Memory* lent = nullptr) const;
  // Adds `change` to the residual stream: x + dropout(change), normed where norms stand after.
  Tensor residual(const Tensor& x, const Tensor& change, const Norm& norm, const Layer& site) const;

  NormPlacement norms_;
  double dropout_;
  Norm attention_norm_, cross_norm_, feed_forward_norm_;
  FeedForward feed_forward_;
  // Each of these layers is a site of dropout, so that each site has its own random stream.
  std::shared_ptr<Layer> attention_residual_, cross_residual_, feed_forward_residual_;
};
TORCH_MODULE(Block);

}  // namespace headshare
