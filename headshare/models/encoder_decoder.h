// The encoder-decoder: an encoder reads the source once, a decoder writes the target token by token and looks at the
// source through cross-attention. With scheme `mha` and norms after it is the first Transformer (Vaswani et al., 2017).
#pragma once

#include "headshare/models/blocks/block_stack.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/models/teacher_output.h"

namespace headshare {

// Returns the sinusoids of an encoder-decoder's positions, [context, E], in the order of its options.
Tensor sinusoid_table(const EncoderDecoderOptions& resolved);

// PaddedIds are rows of equal length; shorter ones are padded with any token on their right.
struct PaddedIds {
  Tensor ids;           // int64 [B, T]
  Tensor visible = {};  // bool [B, T], false for padding; undefined: no padding
};

// An EncodedSource is a source after the encoder has read it.
struct EncodedSource {
  Tensor memory;        // [By, S, E]
  Tensor visible = {};  // as PaddedIds has it
};

// Decoding keeps a TranslationState between steps: `own` caches, one for each depth or for each group of layers that
// share keys and values, and one of cross-attention for each depth. The latter hold each sentence once, however many
// rows (beams) there are of it.
struct TranslationState {
  std::vector<KvCache> own, cross;

  int64_t length() const { return own.front().length(); }
  int64_t allocated_bytes() const;
};

class EncoderDecoderImpl : public Layer {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit EncoderDecoderImpl(EncoderDecoderOptions resolved);

  DropoutClock& clock() const { return *clock_; }
  c10::Device device() const { return target_embedding_.device(); }
  void set_recompute(bool on);

  EncodedSource encode(const PaddedIds& source) const;

  // Maps target ids int64 [B, T], each row's first behind those that the state holds, to hidden states [B, T, E]. B is
  // a multiple of the source's By. With a state, the source is projected on the first call and not read again.
  Tensor hidden(const Tensor& ids, const EncodedSource& source, TranslationState* state = nullptr) const;

  // Maps hidden states [.., E] to logits [.., V].
  Tensor logits(const Tensor& hidden) const;

  // Sums over targets (1 - s) times -log p(target) and s times the mean of -log p over the vocabulary (label smoothing,
  // Szegedy et al., 2016); `plain` has the sum without smoothing. ids are the target behind its start, targets int64
  // [B, T], kIgnoredTarget for padding.
  SummedLoss loss(const PaddedIds& source, const Tensor& ids, const Tensor& targets, double smoothing = 0) const;

  // Returns -log p of every target, [B, T], 0 where ignored; without gradients.
  Tensor token_losses(const PaddedIds& source, const Tensor& ids, const Tensor& targets) const;

  // Makes an empty state for `capacity` target tokens, the start included.
  TranslationState new_state(int64_t capacity) const;

  const BlockStack& encoder() const { return encoder_; }
  const BlockStack& decoder() const { return decoder_; }
  const EncoderDecoderOptions& options() const { return options_; }

 private:
  Tensor embed(const Tensor& ids, const Tensor& table, const Norm& norm, int64_t first, const Layer& site) const;
  void check_ids(const Tensor& ids, int64_t first) const;

  EncoderDecoderOptions options_;
  std::shared_ptr<DropoutClock> clock_;
  Tensor target_embedding_, source_embedding_;        // [V, E]; the same where shared
  Tensor source_positions_, target_positions_;        // [context, E], learned, or a buffer of sinusoids that is one
  Tensor output_embedding_, output_bias_;             // [V, E], the target's embedding when tied; [V] or undefined
  std::shared_ptr<Layer> source_site_, target_site_;  // sites of dropout on embeddings
  Norm source_norm_, target_norm_;                    // over embeddings; null without
  BlockStack encoder_{nullptr}, decoder_{nullptr};
  Norm encoder_norm_, decoder_norm_;  // over the last block, where norms stand before; else null
};
TORCH_MODULE(EncoderDecoder);

}  // namespace headshare
