// Words consist of pieces, and each word may have another number of them: for embeddings that sum over a word's pieces.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {

// PieceBags hold the pieces of some words, one word behind the other, on the ids' device.
struct PieceBags {
  Tensor pieces;  // int64 [n]
  Tensor begins;  // int64 [words]: where the pieces of a word begin
  Tensor counts;  // int64 [words]: how many there are, 1 or more
};

// Returns the place of each piece in its word, int64 [n].
Tensor places_in_words(const PieceBags& bags);

// Sums rows of `rows` [R, W] for each word: the rows numbered by `picked` int64 [n] from one of `begins` int64 [words]
// to the next -> [words, W].
Tensor bag_sums(const Tensor& rows, const Tensor& picked, const Tensor& begins);

// WordPieces keep the pieces of all words that a tokenizer has seen, by word, and ask the tokenizer again when an id
// goes beyond them.
class WordPieces {
 public:
  // A Cut appends the pieces of a word, at least one.
  using Cut = std::function<void(const std::string& word, std::vector<int32_t>* pieces)>;
  explicit WordPieces(Cut cut) : cut_(std::move(cut)) {}

  // Throws Error for a tokenizer with a vocabulary.
  void read_words(std::shared_ptr<const Tokenizer> tokenizer);

  // Returns the pieces of words by their numbers, int64 [words]. Throws Error for numbers of words that the tokenizer
  // has not seen, and where there is no tokenizer.
  PieceBags of(const Tensor& numbers) const;

 private:
  void catch_up(c10::Device device) const;

  Cut cut_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable Tensor pieces_;  // int32 [all pieces]
  mutable Tensor ends_;    // int64 [words + 1]: word k has the pieces ends_[k] .. ends_[k + 1] - 1
};

}  // namespace headshare
