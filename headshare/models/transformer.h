// Decoder and encoder have in common token and position embeddings below a stack of blocks.
#pragma once

#include <memory>
#include <vector>

#include "headshare/base/options/ignored_target.h"
#include "headshare/models/blocks/block_stack.h"
#include "headshare/models/embeddings/token_embedding.h"
#include "headshare/models/teacher_output.h"
#include "headshare/ops/linear.h"

namespace headshare {

// Declares the parameters of the token embedding, `position_embedding` (with learned positions), `embedding_projection`
// (where the embedding is factorised) and `blocks`; the models derived from it declare the rest and then attach()
// themselves to the clock. Layers that share their parameters are one block, applied at several depths.
class TransformerImpl : public Layer {
 public:
  DropoutClock& clock() const { return *clock_; }
  // Returns the attention of a layer with parameters of its own, 0 .. layers() - 1; where layers share theirs, it runs
  // at depth() / layers() depths.
  Attention attention(size_t layer) const { return blocks_->block(layer)->attention; }
  size_t layers() const { return blocks_->layers(); }
  // Returns how many blocks a token passes through.
  size_t depth() const { return blocks_->depth(); }
  // Returns how many caches decoding fills: one for each depth, or for each group of layers that share keys and values.
  size_t caches() const { return blocks_->groups(); }
  c10::Device device() const { return embedding_->device(); }

  // Tells the token embedding where its ids come from, which hashed ones must know before the first pass. Throws Error
  // where tokenizer and embedding do not fit.
  void read_words(std::shared_ptr<const Tokenizer> tokenizer) { embedding_->read_words(std::move(tokenizer)); }

  // Returns the token embedding's vectors for ids [N], without positions: [N, W].
  Tensor token_vectors(const Tensor& ids) const {
    return embedding_->lookup({.ids = ids.unsqueeze(0)}, LookupGradient::kWhole).squeeze(0);
  }

  // With recomputation (BlockStackImpl::set_recompute) blocks run again in the backward pass.
  void set_recompute(bool on) { blocks_->set_recompute(on); }

 protected:
  TransformerImpl(const TransformerOptions& resolved, const TokenEmbeddingOptions& embedding = {});

  // Maps ids [B, T], the first at position `first`, to the sum of token and position embedding [B, T, W].
  Tensor embed(const TokenIds& tokens, int64_t first, LookupGradient gradient = LookupGradient::kWhole) const;

  // Runs the blocks on embeddings [B, T, W], which are projected first where they are factorised: -> [B, T, E].
  // `caches`, when given, holds as many as caches().
  Tensor through_blocks(const Tensor& x, const HeadMask& mask, std::vector<KvCache>* caches) const;

  // Gives the result of through_blocks() at some positions only, `places` int64 [N] among the B T, with less work: [B,
  // T, W] -> [N, E].
  Tensor through_blocks_at(const Tensor& places, const Tensor& x, const HeadMask& mask) const;

  const std::shared_ptr<DropoutClock>& shared_clock() const { return clock_; }
  const Tensor& token_embedding() const { return embedding_->table(); }  // [V, W]; throws Error where words are hashed

 private:
  void check_ids(const Tensor& ids, int64_t first) const;
  Tensor projected(const Tensor& embedded) const;  // [B, T, W] -> [B, T, E]

  PositionKind positions_;
  int64_t context_;
  std::shared_ptr<DropoutClock> clock_;
  std::shared_ptr<TokenEmbedding> embedding_;
  Tensor position_embedding_;             // [context, W], learned or a buffer of sinusoids; undefined otherwise
  Linear embedding_projection_{nullptr};  // W -> E; empty where the embedding is not factorised
  BlockStack blocks_{nullptr};
};

// Returns sines and cosines of position / 10000^(2i / E), interleaved (Vaswani et al., section 3.5): [length, E].
Tensor sinusoids(int64_t length, int64_t width);

}  // namespace headshare
