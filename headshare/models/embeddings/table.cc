#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {
namespace {

class TableEmbedding : public TokenEmbedding {
 public:
  explicit TableEmbedding(Tensor table) : table_(std::move(table)) {}

  Tensor lookup(const TokenIds& tokens, LookupGradient gradient) const override {
    const bool sparse = gradient == LookupGradient::kRows && device().is_cpu();
    return at::embedding(table_, tokens.ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, sparse);
  }
  const Tensor& table() const override { return table_; }
  void read_words(std::shared_ptr<const Tokenizer> tokenizer) override {
    HS_CHECK(tokenizer->words() == nullptr, "the tokenizer '", tokenizer->kind(),
             "' has no vocabulary, and --token-embedding is table, which has a row for each token of one; choose "
             "--token-embedding hash-proj or another hash-...");
  }
  c10::Device device() const override { return table_.device(); }

 private:
  Tensor table_;
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_table_embedding(const EmbeddingSize& size, const EmbeddingHost& host) {
  return std::make_shared<TableEmbedding>(
      host.declare("token_embedding", {size.vocabulary, size.width}, Init::normal(size.deviation)));
}

}  // namespace headshare
