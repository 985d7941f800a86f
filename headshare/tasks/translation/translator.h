// A trained encoder-decoder at work: source tokens in, translations out.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headshare/decode/beam/search_request.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/encoder_decoder.h"

namespace headshare {

// The id that ends a text of this tokenizer. Throws Error, led by `where`, where it has none.
int32_t text_end(const Tokenizer& tokenizer, const std::string& where);

// Rows padded on the right, behind each row's own end: ids [B, S] and what is no padding; where all are of one length,
// nothing is hidden. At least one row, none empty.
PaddedIds padded(std::span<const std::vector<int32_t>> rows, c10::Device device);

class Translator {
 public:
  // The model is in evaluation mode while it translates, and stays so.
  Translator(EncoderDecoder model, TokenizerPair tokenizers);

  // The n-best of each source, the best first. Sources are tokens without an end, at least one each and at most
  // longest_source(); prefixes, when given, are one for each source and begin its translation. A hypothesis has no more
  // tokens than fit into the model's positions.
  std::vector<std::vector<Hypothesis>> translate(std::span<const std::vector<int32_t>> sources,
                                                 const BeamOptions& options,
                                                 const std::optional<SamplingOptions>& sampling = {},
                                                 std::span<const std::vector<int32_t>> prefixes = {},
                                                 std::span<const uint64_t> sequences = {}) const;

  std::vector<int32_t> encode(const std::string& text) const { return tokenizers_.source->encode(text); }
  // Behind the prefix that it was made with, without the token that ends it. Valid UTF-8.
  std::string text(const Hypothesis& hypothesis, std::span<const int32_t> prefix = {}) const;

  // The place of a source token for each token of a hypothesis and its prefix, its end left out (alignment.h).
  std::vector<int64_t> alignment(const std::vector<int32_t>& source, const Hypothesis& hypothesis,
                                 std::span<const int32_t> prefix = {}) const;

  // Tokens, the end left out.
  int64_t longest_source() const;

  const EncoderDecoder& model() const { return model_; }
  const TokenizerPair& tokenizers() const { return tokenizers_; }

 private:
  // The tokens that make the text.
  static std::vector<int32_t> whole(const Hypothesis& hypothesis, std::span<const int32_t> prefix);

  EncoderDecoder model_;
  TokenizerPair tokenizers_;
  int32_t source_end_;
};

// The sentences of a whole file, in batches of like length: the best translation of each, in their order. A source that
// is empty has an empty translation; one that is too long is cut. `progress` counts sentences.
std::vector<std::string> translate_all(const Translator& translator, const std::vector<std::vector<int32_t>>& sources,
                                       const BeamOptions& options,
                                       const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace headshare
