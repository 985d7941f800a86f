// A Translator is a trained encoder-decoder at work: source tokens in, translations out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headshare/decode/beam/search_request.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/text/text_borders.h"

namespace headshare {

// Pads rows on the right, behind each row's own end: ids [B, S], and `visible`, which tells what is no padding; where
// all rows have one length, nothing is hidden. There is at least one row, and none is empty.
PaddedIds padded(std::span<const std::vector<int32_t>> rows, c10::Device device);

// A TranslationRequest has sentences to translate together.
struct TranslationRequest {
  std::vector<std::vector<int32_t>> sources;  // tokens without borders: 1 .. longest_source() of each
  BeamOptions options = {};
  std::optional<SamplingOptions> sampling = {};
  std::vector<std::vector<int32_t>> prefixes = {};  // what each translation begins with; empty: nothing
  std::vector<uint64_t> sequences = {};             // keys random numbers of each sentence; empty: 0
  std::function<void()> each_step = {};             // called before each step; what it throws ends the translation
};

class Translator {
 public:
  // The model is in evaluation mode while it translates, and stays so.
  Translator(EncoderDecoder model, TokenizerPair tokenizers);

  // Returns the n-best of each source, the best first. A hypothesis has no more tokens than fit into the model's
  // positions behind its prefix.
  std::vector<std::vector<Hypothesis>> translate(const TranslationRequest& request) const;

  // Returns how many tokens a translation may have behind a prefix of so many; below 1 the prefix is too long.
  int64_t room_behind(size_t prefix) const;

  std::vector<int32_t> encode(const std::string& text) const { return tokenizers_.source->encode(text); }
  // Returns the text behind the prefix that the hypothesis was made with, without tokens that stand for no text. It is
  // valid UTF-8.
  std::string text(const Hypothesis& hypothesis, std::span<const int32_t> prefix = {}) const;

  // Returns the place of a source token for each token of a hypothesis and its prefix, its end left out (alignment.h).
  std::vector<int64_t> alignment(const std::vector<int32_t>& source, const Hypothesis& hypothesis,
                                 std::span<const int32_t> prefix = {}) const;

  // Returns how many tokens a source may have, the borders left out.
  int64_t longest_source() const;

  const EncoderDecoder& model() const { return model_; }
  const TokenizerPair& tokenizers() const { return tokenizers_; }

 private:
  // Joins prefix and hypothesis, its end left out.
  static std::vector<int32_t> whole(const Hypothesis& hypothesis, std::span<const int32_t> prefix);
  int64_t positions() const;
  // marked() returns a search with the marks that the model sets; sentence() returns sentence `i` of a request for it.
  SearchRequest marked() const;
  SearchSentence sentence(const TranslationRequest& request, size_t i) const;

  EncoderDecoder model_;
  TokenizerPair tokenizers_;
  TextBorders source_borders_, target_borders_;
};

// Translates the sentences of a whole file, in batches of similar length, and returns the best translation of each, in
// their order. A source that is empty has an empty translation; one that is too long is cut. `progress` counts
// sentences, and is called at each step, so that it may throw to end the work.
std::vector<std::string> translate_all(const Translator& translator, const std::vector<std::vector<int32_t>>& sources,
                                       const BeamOptions& options,
                                       const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace headshare
