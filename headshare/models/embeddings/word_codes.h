// Hashed embeddings read codes of the words behind ids, on the model's device.
#pragma once

#include <memory>

#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {

// `type_embedding` has a row for each special token, and one for all words.
inline constexpr int64_t kTokenTypes = 6;

// Maps ids to types, int64 [..] -> [..]: ids of special tokens stay, all others become the last type.
Tensor token_types(const Tensor& ids);

// Returns bits 0 .. count - 1 of signatures, int64 [n, 2] -> float [n, count].
Tensor signature_bits(const Tensor& signatures, int64_t count);

// Returns the tokenizer as one that hashed embeddings can ask for words. Throws Error for one with a vocabulary.
std::shared_ptr<const Tokenizer> word_reader(std::shared_ptr<const Tokenizer> tokenizer);

// Throws Error where there is no tokenizer yet.
void check_reader(const Tokenizer* tokenizer);

// WordCodes hold the codes of all words that a tokenizer has seen and ask the tokenizer again when an id goes beyond
// them.
class WordCodes {
 public:
  enum class Code {
    kSignature,  // int64 [2]: the halves; 0 for special tokens
    kBucket,     // int64: special tokens keep their ids, a word has 5 + its bucket
  };
  explicit WordCodes(Code code) : code_(code) {}

  // Throws Error for a tokenizer with a vocabulary.
  void read_words(std::shared_ptr<const Tokenizer> tokenizer);

  // Returns the codes of tokens, [B T, 2] or [B T], on the ids' device. Throws Error for ids of words that the
  // tokenizer has not seen, and where there is no tokenizer.
  Tensor of(const TokenIds& tokens) const;

 private:
  void catch_up(c10::Device device) const;
  Tensor codes_of_words(int32_t first, int32_t last) const;
  Tensor codes_of(const Tensor& loose_signatures) const;

  Code code_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable Tensor known_;  // codes by id; it grows
};

}  // namespace headshare
