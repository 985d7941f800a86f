// The decoder language model: token and position embeddings, pre-norm blocks, a final norm and the
// output layer. With scheme `mha`, learned positions and biases it is GPT-2.
#pragma once

#include "headshare/models/transformer.h"

namespace headshare {

// What decoding keeps between steps: one cache for each depth.
struct DecodingState {
  std::vector<KvCache> caches;

  int64_t length() const { return caches.front().length(); }
  int64_t allocated_bytes() const;
};

class DecoderImpl : public TransformerImpl {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit DecoderImpl(DecoderOptions resolved);

  // ids int64 [B, T] -> hidden states after the final norm [B, T, E]. With a state, ids continue it.
  Tensor hidden(const Tensor& ids, DecodingState* state = nullptr) const;

  // [.., E] -> [.., V]. Of a factorised embedding, hidden states are projected to its width first.
  Tensor logits(const Tensor& hidden) const;

  // Sum of -log p(targets | ids); ids, targets int64 [B, T]. The scores of all tokens are never held at once.
  SummedLoss loss(const Tensor& ids, const Tensor& targets) const;

  // What this model teaches about the tokens that have a target, in evaluation mode and without gradients.
  Lesson lesson(const Tensor& ids, const Tensor& targets) const;

  // The loss that learns from a lesson about the same tokens. Throws Error where the lesson does not fit.
  SummedLoss loss(const Tensor& ids, const Tensor& targets, const Lesson& lesson, const Learning& how) const;

  // -log p of every target, [B, T], 0 where ignored.
  Tensor token_losses(const Tensor& ids, const Tensor& targets) const;

  DecodingState new_state(int64_t capacity) const;

  const DecoderOptions& options() const { return options_; }

 private:
  Tensor above(const Tensor& embedded, DecodingState* state) const;  // hidden states
  Tensor scored(const Tensor& hidden) const;                         // what the output layer scores: [.., E] -> [.., W]

  DecoderOptions options_;
  Norm norm_;
  Linear output_projection_{nullptr};  // E -> W; empty where the embedding is not factorised
  Tensor output_embedding_;            // [V, W]; the token embedding when tied
};
TORCH_MODULE(Decoder);

}  // namespace headshare
