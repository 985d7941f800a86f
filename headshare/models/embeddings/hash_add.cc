#include <ATen/ATen.h>

#include <cmath>

#include "headshare/models/embeddings/signature_embedding.h"
#include "headshare/ops/linear.h"

namespace headshare {
namespace {

class HashAdd : public SignatureEmbedding {
 public:
  HashAdd(const TokenEmbeddingOptions& o, const EmbeddingSize& size, EmbeddingHost host)
      : SignatureEmbedding(o, size, host),
        scale_(1 / std::sqrt(static_cast<double>(o.bits))),
        one_(host.declare("bit_embedding_one", {size.width, o.bits}, Init::normal(size.deviation))),
        zero_(host.declare("bit_embedding_zero", {size.width, o.bits}, Init::normal(size.deviation))),
        host_(std::move(host)) {}

 private:
  // Dropout acts on the matrices, with one mask for the whole batch, as in the authors' code. W_1 b + W_0 (1 - b) is
  // (W_1 - W_0) b + W_0 1, one product instead of two.
  Tensor code(const Tensor& bits, const Tensor&) const override {
    const Tensor one = host_.dropout(one_, /*part=*/1);
    const Tensor zero = host_.dropout(zero_, /*part=*/2);
    return linear_map(bits, (one - zero) * scale_, zero.sum(1) * scale_);
  }

  double scale_;
  Tensor one_, zero_;  // [W, B]
  EmbeddingHost host_;
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_add(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                              EmbeddingHost host) {
  return std::make_shared<HashAdd>(options, size, std::move(host));
}

}  // namespace headshare
