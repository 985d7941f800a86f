#include <ATen/ATen.h>

#include "headshare/models/embeddings/signature_embedding.h"

namespace headshare {
namespace {

int64_t chunk_count(const TokenEmbeddingOptions& o) { return (o.bits + o.chunk_bits - 1) / o.chunk_bits; }

class HashPool : public SignatureEmbedding {
 public:
  HashPool(const TokenEmbeddingOptions& o, const EmbeddingSize& size, EmbeddingHost host)
      : SignatureEmbedding(o, size, host),
        bits_(o.bits),
        chunk_bits_(o.chunk_bits),
        rows_(host.declare("chunk_embedding", {(int64_t{1} << o.chunk_bits) + 1, size.width},
                           Init::normal(size.deviation))),
        weights_(host.declare("chunk_weights", {chunk_count(o), size.width}, Init::normal(size.deviation))),
        host_(std::move(host)) {}

 private:
  Tensor code(const Tensor& bits, const Tensor& types) const override {
    // Row 0 stays as it starts: a special token has its own type embedding, which would learn the same.
    const Tensor picked = at::embedding(rows_, numbers(bits, types), /*padding_idx=*/0);  // [n, C, W]
    return (host_.dropout(picked, /*part=*/1) * weights_.softmax(0)).sum(1);
  }

  // Returns the row that each chunk picks, int64 [n, C]: the chunk's bits as a number, plus 1; 0 for special tokens.
  Tensor numbers(const Tensor& bits, const Tensor& types) const {
    std::vector<Tensor> columns;
    for (int64_t begin = 0; begin < bits_; begin += chunk_bits_) {
      const int64_t width = std::min(chunk_bits_, bits_ - begin);
      const Tensor powers = at::pow(2, at::arange(width - 1, -1, -1, bits.options()));
      columns.push_back(bits.narrow(1, begin, width).mv(powers));  // exact: below 2^24
    }
    const Tensor picked = at::stack(columns, 1).to(at::kLong) + 1;
    return picked * types.eq(kTokenTypes - 1).unsqueeze(1);
  }

  int64_t bits_, chunk_bits_;
  Tensor rows_, weights_;
  EmbeddingHost host_;
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_pool(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                               EmbeddingHost host) {
  return std::make_shared<HashPool>(options, size, std::move(host));
}

}  // namespace headshare
