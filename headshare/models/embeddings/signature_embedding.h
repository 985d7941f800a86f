// Embeddings that read signatures have in common the words' codes and the rows of `type_embedding`.
#pragma once

#include "headshare/models/embeddings/word_codes.h"

namespace headshare {

class SignatureEmbedding : public TokenEmbedding {
 public:
  // Returns code + S[type] for each token.
  Tensor lookup(const TokenIds& tokens, LookupGradient gradient) const final;
  void read_words(std::shared_ptr<const Tokenizer> tokenizer) final { codes_.read_words(std::move(tokenizer)); }
  c10::Device device() const final { return types_.device(); }

 protected:
  SignatureEmbedding(const TokenEmbeddingOptions& options, const EmbeddingSize& size, const EmbeddingHost& host);

 private:
  // Maps the first B bits of signatures, float [n, B], and their types, int64 [n], to vectors [n, W].
  virtual Tensor code(const Tensor& bits, const Tensor& types) const = 0;

  Tensor types_;  // [6, W]
  int64_t bits_;
  WordCodes codes_{WordCodes::Code::kSignature};
};

}  // namespace headshare
