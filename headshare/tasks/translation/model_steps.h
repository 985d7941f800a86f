// ModelSteps shows an encoder-decoder to beam search.
#pragma once

#include "headshare/decode/beam/step_scores.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/ops/packed_weights.h"

namespace headshare {

// The source is read once, when this is made; what cross-attention keeps of it holds each sentence once, however many
// beams there are, and is never reordered within a sentence. Runs in evaluation mode and without gradients; `model`
// outlives this, and its weights do not change meanwhile.
class ModelSteps : public StepScores {
 public:
  // `capacity` is the most target tokens of a hypothesis, the start included.
  ModelSteps(const EncoderDecoder& model, const PaddedIds& source, int64_t capacity);

  Tensor next(const std::vector<int64_t>& last) override;
  void widen(int64_t beam) override;
  void move(std::span<const RowMove> moves) override;
  void keep(std::span<const int64_t> sentences) override;

  // Returns the bytes that the caches take now.
  int64_t cache_bytes() const { return state_.allocated_bytes(); }

 private:
  EncoderDecoder model_;
  int64_t beam_ = 1;  // rows of a sentence
  EncodedSource source_;
  TranslationState state_;
  PackedWeights weights_ = {};
};

}  // namespace headshare
