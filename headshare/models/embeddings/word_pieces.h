// Words as pieces, of which each word has its own number: for embeddings that add up what pieces look up.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {

// The pieces of some words, one word behind the other. On the ids' device.
struct PieceBags {
  Tensor pieces;  // int64 [n]
  Tensor begins;  // int64 [words]: where the pieces of a word begin
  Tensor counts;  // int64 [words]: how many there are, 1 or more
};

// Each piece's place in its word, int64 [n].
Tensor places_in_words(const PieceBags& bags);

// Sums of rows of `rows` [R, W]: of `picked` int64 [n], those from each of `begins` int64 [words] to the next ->
// [words, W].
Tensor bag_sums(const Tensor& rows, const Tensor& picked, const Tensor& begins);

// The pieces of all words that a tokenizer has seen. They are kept by word, and words are asked of the tokenizer when
// an id goes beyond those at hand.
class WordPieces {
 public:
  // Appends the pieces of a word, at least one.
  using Cut = std::function<void(const std::string& word, std::vector<int32_t>* pieces)>;
  explicit WordPieces(Cut cut) : cut_(std::move(cut)) {}

  // Throws Error for a tokenizer with a vocabulary.
  void read_words(std::shared_ptr<const Tokenizer> tokenizer);

  // Of word numbers, int64 [words]. Throws Error for numbers of words that the tokenizer has not seen, and where there
  // is no tokenizer.
  PieceBags of(const Tensor& numbers) const;

 private:
  void catch_up(c10::Device device) const;

  Cut cut_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable Tensor pieces_;  // int32 [all pieces]
  mutable Tensor ends_;    // int64 [words + 1]: word k has the pieces ends_[k] .. ends_[k + 1] - 1
};

}  // namespace headshare
