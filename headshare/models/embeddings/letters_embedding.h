// Embeddings that read letters have in common the words' pieces and the rows of `special_embedding`.
#pragma once

#include "headshare/models/embeddings/word_pieces.h"

namespace headshare {

class LettersEmbedding : public TokenEmbedding {
 public:
  // Computes each different word of a batch once. Throws Error for ids below 0, whose signatures stand for no word.
  Tensor lookup(const TokenIds& tokens, LookupGradient gradient) const final;
  void read_words(std::shared_ptr<const Tokenizer> tokenizer) final { pieces_.read_words(std::move(tokenizer)); }
  c10::Device device() const final { return specials_.device(); }

 protected:
  LettersEmbedding(const EmbeddingSize& size, const EmbeddingHost& host, WordPieces::Cut cut);

 private:
  virtual Tensor words(const PieceBags& bags) const = 0;  // -> [words, W]; there is at least one word

  Tensor specials_;  // [5, W]
  WordPieces pieces_;
};

}  // namespace headshare
