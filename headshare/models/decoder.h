// The decoder is a language model: token and position embeddings, pre-norm blocks, a final norm and the output layer.
// With scheme `mha`, learned positions and biases it is GPT-2.
#pragma once

#include "headshare/models/transformer.h"

namespace headshare {

// Decoding keeps a DecodingState between steps, with as many caches as the model fills.
struct DecodingState {
  std::vector<KvCache> caches;

  int64_t length() const { return caches.front().length(); }
  int64_t allocated_bytes() const;
};

class DecoderImpl : public TransformerImpl {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit DecoderImpl(DecoderOptions resolved);

  // Maps ids int64 [B, T] to hidden states after the final norm [B, T, E]. With a state, ids continue it.
  Tensor hidden(const Tensor& ids, DecodingState* state = nullptr) const;

  // Maps hidden states [.., E] to logits [.., V]; where the embedding is factorised, they are projected to its width
  // first.
  Tensor logits(const Tensor& hidden) const;

  // Sums -log p(targets | ids); ids, targets int64 [B, T]. The logits of all tokens are never held at once.
  SummedLoss loss(const Tensor& ids, const Tensor& targets) const;

  // Returns what a student learns from this model about the tokens that have a target, in evaluation mode and without
  // gradients.
  TeacherOutput teacher_output(const Tensor& ids, const Tensor& targets) const;

  // Returns the loss of a student that learns from what a teacher gave about the same tokens. Throws Error where it
  // does not fit.
  SummedLoss loss(const Tensor& ids, const Tensor& targets, const TeacherOutput& taught,
                  const DistillationWeights& how) const;

  // Returns -log p of every target, [B, T], 0 where ignored.
  Tensor token_losses(const Tensor& ids, const Tensor& targets) const;

  DecodingState new_state(int64_t capacity) const;

  const DecoderOptions& options() const { return options_; }

 private:
  Tensor above(const Tensor& embedded, DecodingState* state) const;  // hidden states
  Tensor scored(const Tensor& hidden) const;                         // the output layer reads this: [.., E] -> [.., W]

  DecoderOptions options_;
  Norm norm_;
  Linear output_projection_{nullptr};  // E -> W; empty where the embedding is not factorised
  Tensor output_embedding_;            // [V, W]; the token embedding when tied
};
TORCH_MODULE(Decoder);

}  // namespace headshare
