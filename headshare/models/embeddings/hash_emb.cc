#include <ATen/ATen.h>

#include "headshare/models/embeddings/word_codes.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

constexpr int64_t kSpecialRows = HashTokenizer::kSpecials;

class HashEmb : public TokenEmbedding {
 public:
  HashEmb(Tensor rows, int64_t buckets) : rows_(std::move(rows)), buckets_(buckets) {}

  Tensor lookup(const TokenIds& tokens, LookupGradient) const override {
    const Tensor codes = codes_.of(tokens).view_as(tokens.ids);
    const Tensor rows =
        at::where(codes.lt(kSpecialRows), codes, (codes - kSpecialRows).remainder(buckets_) + kSpecialRows);
    return at::embedding(rows_, rows);
  }
  void read_words(std::shared_ptr<const Tokenizer> tokenizer) override { codes_.read_words(std::move(tokenizer)); }
  c10::Device device() const override { return rows_.device(); }

 private:
  Tensor rows_;
  int64_t buckets_;
  WordCodes codes_{WordCodes::Code::kBucket};
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_emb(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                              const EmbeddingHost& host) {
  return std::make_shared<HashEmb>(
      host.declare("bucket_embedding", {options.buckets + kSpecialRows, size.width}, Init::normal(size.deviation)),
      options.buckets);
}

}  // namespace headshare
