// A Masker chooses the tokens of a text that a masked language model is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/base/rng.h"
#include "headshare/tasks/masked/window_rows.h"

namespace headshare {

struct MaskingOptions {
  double rate = 0.15;        // share of a window's tokens that are asked for
  bool whole_words = false;  // all tokens of a word or none
};

Fields fields(MaskingOptions& options);

// Masker masks as BERT does. Special tokens, [UNK] among them, are never asked for.
class Masker : public WindowRows {
 public:
  // Throws Error, naming the way out and the tokenizer's file where it has one, when the tokenizer lacks a special
  // token that masking needs, or whole words are wanted and its tokens do not tell where words begin.
  Masker(const Tokenizer& tokenizer, const MaskingOptions& options, const std::string& path = {});

  // Asks for max(1, round(rate x n)) of a row's n ordinary tokens, or a little less with whole words: of these, 80 in
  // 100 become [MASK], 10 a random ordinary token, 10 stay. A word that is too long for what is left to choose is
  // passed over; where no word fits, the first drawn is masked in part. A row without ordinary tokens has no targets.
  void mask_row(int64_t row, Philox& random, WindowBatch* batch) const;

  // Hides one token of a row behind [MASK] and asks for it.
  void mask_place(int64_t row, int64_t place, WindowBatch* batch) const;

 private:
  std::vector<int64_t> chosen(std::span<const int64_t> row, Philox& random) const;

  MaskingOptions options_;
  int64_t mask_;
  std::vector<char> continues_;  // [V], with whole words
  std::vector<int64_t> ordinary_tokens_;
};

// Returns -sum_t p(t) ln p(t) with the frequencies of a training text's ordinary tokens: the loss of a model that knows
// how frequent each token is and nothing else. Throws Error when there are none.
double unigram_entropy(const TokenData& tokens, const Masker& masker, int64_t vocabulary);

}  // namespace headshare
