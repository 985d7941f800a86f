// The decoder language model: token and position embeddings, pre-norm blocks, a final norm and the
// output layer. With scheme `mha`, learned positions and biases it is GPT-2.
#pragma once

#include <memory>
#include <vector>

#include "headshare/attention/attention.h"
#include "headshare/data/batcher.h"
#include "headshare/models/options.h"

namespace headshare {

// x -> W2 act(W1 x).
class FeedForwardImpl : public Layer {
 public:
  explicit FeedForwardImpl(const DecoderOptions& resolved);
  Tensor forward(const Tensor& x) const;  // [B, T, E] -> [B, T, E]

 private:
  ActivationKind activation_;
  Linear expand_, contract_;
};
TORCH_MODULE(FeedForward);

// x + attention(norm(x)), then x + feed_forward(norm(x)).
class BlockImpl : public Layer {
 public:
  explicit BlockImpl(const DecoderOptions& resolved);
  Tensor forward(const Tensor& x, const HeadMask& mask, KvCache* cache) const;  // [B, T, E] -> [B, T, E]

  Attention attention;

 private:
  double dropout_;
  LayerNorm attention_norm_, feed_forward_norm_;
  FeedForward feed_forward_;
  // Dropout sites: separate layers, so that each has its own stream.
  std::shared_ptr<Layer> attention_residual_, feed_forward_residual_;
};
TORCH_MODULE(Block);

// What decoding keeps between steps: one cache a block.
struct DecodingState {
  std::vector<KvCache> caches;

  int64_t length() const { return caches.front().length(); }
  int64_t allocated_bytes() const;
};

// A loss summed over tokens, and how many there were: means are formed by whoever knows all parts.
struct SummedLoss {
  Tensor sum;          // scalar, nats
  int64_t tokens = 0;  // targets that were not kIgnoredTarget
};

class DecoderImpl : public Layer {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit DecoderImpl(DecoderOptions resolved);

  // ids int64 [B, T] -> hidden states after the final norm [B, T, E]. With a state, ids continue it.
  Tensor hidden(const Tensor& ids, DecodingState* state = nullptr) const;

  // [.., E] -> [.., V].
  Tensor logits(const Tensor& hidden) const;

  // Sum of -log p(targets | ids); ids, targets int64 [B, T]. The scores of all tokens are never held at once.
  SummedLoss loss(const Tensor& ids, const Tensor& targets) const;

  // -log p of every target, [B, T], 0 where ignored.
  Tensor token_losses(const Tensor& ids, const Tensor& targets) const;

  DecodingState new_state(int64_t capacity) const;

  const DecoderOptions& options() const { return options_; }
  DropoutClock& clock() const { return *clock_; }
  const Scheme& scheme() const { return blocks_.front()->attention->scheme(); }
  c10::Device device() const { return token_embedding_.device(); }

  // Blocks keep only their inputs and run again in the backward pass.
  void set_recompute(bool on) { recompute_ = on; }

 private:
  Tensor embed(const Tensor& ids, int64_t first) const;
  void check_ids(const Tensor& ids, int64_t first) const;

  DecoderOptions options_;
  bool recompute_ = false;
  std::shared_ptr<DropoutClock> clock_;
  Tensor token_embedding_;     // [V, E]
  Tensor position_embedding_;  // [context, E], learned or a buffer of sinusoids; undefined otherwise
  std::vector<Block> blocks_;
  LayerNorm norm_{nullptr};
  Tensor output_embedding_;  // [V, E]; token_embedding_ when tied
};
TORCH_MODULE(Decoder);

// [length, E]: sin and cos of position / 10000^(2i / E), interleaved (Vaswani et al., section 3.5).
Tensor sinusoids(int64_t length, int64_t width);

}  // namespace headshare
