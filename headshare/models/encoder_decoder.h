// The encoder-decoder: an encoder reads the source once, a decoder writes the target token by token and looks at the
// source through cross-attention. With scheme `mha` and norms after it is the first Transformer (Vaswani et al., 2017).
#pragma once

#include "headshare/models/block_stack.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/models/lesson.h"

namespace headshare {

// The positions of an encoder-decoder that has sinusoids, [context, E], in the order of its options.
Tensor sinusoid_table(const EncoderDecoderOptions& resolved);

// Rows of equal length; shorter ones are padded with any token on their right.
struct PaddedIds {
  Tensor ids;           // int64 [B, T]
  Tensor visible = {};  // bool [B, T], false for padding; undefined: there is none
};

// A source that was read.
struct EncodedSource {
  Tensor memory;        // [By, S, E]
  Tensor visible = {};  // as PaddedIds has it
};

// What decoding keeps between steps, one cache for each depth. The caches of cross-attention hold each sentence once,
// however many rows (beams) there are of it.
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

  // Target ids int64 [B, T], each row's first behind those that the state holds -> hidden states [B, T, E]. B is a
  // multiple of the source's By. With a state, the source is projected on the first call and not read again.
  Tensor hidden(const Tensor& ids, const EncodedSource& source, TranslationState* state = nullptr) const;

  // [.., E] -> [.., V].
  Tensor logits(const Tensor& hidden) const;

  // Sum over targets of (1 - s) times -log p(target) and s times the mean of -log p over the vocabulary (label
  // smoothing, Szegedy et al., 2016); `plain` has the sum without smoothing. ids are the target behind its start,
  // targets int64 [B, T], kIgnoredTarget for padding.
  SummedLoss loss(const PaddedIds& source, const Tensor& ids, const Tensor& targets, double smoothing = 0) const;

  // -log p of every target, [B, T], 0 where ignored; without gradients.
  Tensor token_losses(const PaddedIds& source, const Tensor& ids, const Tensor& targets) const;

  // `capacity`: target tokens, the start included.
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
  std::shared_ptr<Layer> source_site_, target_site_;  // of dropout on embeddings
  Norm source_norm_, target_norm_;                    // over embeddings; null without
  BlockStack encoder_{nullptr}, decoder_{nullptr};
  Norm encoder_norm_, decoder_norm_;  // over the last block, where norms stand before; else null
};
TORCH_MODULE(EncoderDecoder);

}  // namespace headshare
