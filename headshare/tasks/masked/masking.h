// Which tokens of a text a masked language model is asked for, and the windows they stand in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headshare/base/field.h"
#include "headshare/base/rng.h"
#include "headshare/data/text/token_data.h"
#include "headshare/text/tokenizer.h"

namespace headshare {

struct MaskingOptions {
  double rate = 0.15;        // share of a window's tokens that are asked for
  bool whole_words = false;  // all tokens of a word or none
};

Fields fields(MaskingOptions& options);

// A batch of windows [CLS] tokens [SEP].
struct MaskedBatch {
  int64_t rows = 0;              // B
  int64_t length = 0;            // T
  std::vector<int64_t> ids;      // [B, T]; [PAD] behind a row that is shorter
  std::vector<int64_t> targets;  // [B, T]: the token that was there, or kIgnoredTarget where nothing is asked
  std::vector<int64_t> lengths;  // [B], without padding
  int64_t scored = 0;            // targets that are not ignored

  bool padded() const;
};

// BERT's masking. Special tokens, [UNK] among them, are never asked for.
class Masker {
 public:
  // Throws Error, naming the way out and the tokenizer's file where it has one, when the tokenizer lacks a special
  // token that masking needs, or whole words are wanted and its tokens do not tell where words begin.
  Masker(const Tokenizer& tokenizer, const MaskingOptions& options, const std::string& path = {});

  // Appends a row made of a window's tokens, unmasked, without targets.
  void add_row(std::span<const int64_t> tokens, MaskedBatch* batch) const;

  // Pads all rows to the longest; further rows cannot be added.
  void pad(MaskedBatch* batch) const;

  // Asks for max(1, round(rate x n)) of a row's n ordinary tokens, or a little less with whole words: of these, 80 in
  // 100 become [MASK], 10 a random ordinary token, 10 stay. A word that is too long for what is left to choose is
  // passed over; where no word fits, the first drawn is masked in part. A row without ordinary tokens has no targets.
  void mask_row(int64_t row, Philox& random, MaskedBatch* batch) const;

  // Hides one token of a row behind [MASK] and asks for it.
  void mask_place(int64_t row, int64_t place, MaskedBatch* batch) const;

  // Whether a token may be asked for.
  bool ordinary(int64_t token) const { return ordinary_.at(static_cast<size_t>(token)) != 0; }

  // Tokens of text in a window of `context`: [CLS] and [SEP] take two. Throws Error when nothing is left.
  static int64_t room(int64_t context);

 private:
  std::vector<int64_t> chosen(std::span<const int64_t> row, Philox& random) const;

  MaskingOptions options_;
  int64_t classify_, separate_, mask_, padding_;
  std::vector<char> ordinary_;   // [V]
  std::vector<char> continues_;  // [V], with whole words
  std::vector<int64_t> ordinary_tokens_;
};

// Throws Error when none of these tokens may be asked for; `what` names them: "validation text".
void check_maskable(const TokenData& tokens, const Masker& masker, const std::string& what);

// Disjoint windows over a text, the last one shorter: what masked models are judged on.
class MaskedWindows {
 public:
  // Over the first `most` tokens, or all. Throws Error when there are none.
  MaskedWindows(TokenData tokens, const Masker& masker, int64_t context, std::optional<int64_t> most = {});

  int64_t windows() const { return windows_; }
  int64_t tokens() const { return size_; }

  // Windows first .. first + count - 1, unmasked and unpadded.
  MaskedBatch rows(int64_t first, int64_t count) const;

 private:
  TokenData tokens_;
  const Masker& masker_;
  int64_t size_;
  int64_t room_;
  int64_t windows_;
};

// -sum_t p(t) ln p(t) with the frequencies of a training text's ordinary tokens: the loss of a model that knows how
// frequent each token is and nothing else. Throws Error when there are none.
double unigram_entropy(const TokenData& tokens, const Masker& masker, int64_t vocabulary);

}  // namespace headshare
