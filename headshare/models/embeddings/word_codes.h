// What hashed embeddings read of the words behind ids, on the model's device.
#pragma once

#include <memory>

#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {

// Rows of `type_embedding`: the special tokens, and one for all words.
inline constexpr int64_t kTokenTypes = 6;

// Ids of special tokens stay, all others become the last type: int64 [..] -> [..].
Tensor token_types(const Tensor& ids);

// Bits 0 .. count - 1 of signatures, int64 [n, 2] -> float [n, count].
Tensor signature_bits(const Tensor& signatures, int64_t count);

// A tokenizer that hashed embeddings can ask for words. Throws Error for one with a vocabulary.
std::shared_ptr<const Tokenizer> word_reader(std::shared_ptr<const Tokenizer> tokenizer);

// Throws Error where there is none yet.
void check_reader(const Tokenizer* tokenizer);

// The codes of all words that a tokenizer has seen; they are asked of it when an id goes beyond those at hand.
class WordCodes {
 public:
  enum class Code {
    kSignature,  // int64 [2]: the halves; 0 for special tokens
    kBucket,     // int64: special tokens keep their ids, a word has 5 + its bucket
  };
  explicit WordCodes(Code code) : code_(code) {}

  // Throws Error for a tokenizer with a vocabulary.
  void read_words(std::shared_ptr<const Tokenizer> tokenizer);

  // -> [B T, 2] or [B T] on the ids' device. Throws Error for ids of words that the tokenizer has not seen, and where
  // there is no tokenizer.
  Tensor of(const TokenIds& tokens) const;

 private:
  void catch_up(c10::Device device) const;
  Tensor codes_of_words(int32_t first, int32_t last) const;
  Tensor codes_of(const Tensor& loose_signatures) const;

  Code code_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable Tensor known_;  // by id; grows
};

}  // namespace headshare
