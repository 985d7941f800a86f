#include <ATen/ATen.h>

#include "headshare/models/embeddings/signature_embedding.h"
#include "headshare/ops/linear.h"

namespace headshare {
namespace {

constexpr double kSmallestNorm = 1e-8;

// Returns rows minus their means, scaled to length 1; rows of equal numbers become 0.
Tensor standardised(const Tensor& rows) {
  const Tensor centred = rows - rows.mean(1, /*keepdim=*/true);
  return centred / centred.norm(2, {1}, /*keepdim=*/true).clamp_min(kSmallestNorm);
}

class HashProj : public SignatureEmbedding {
 public:
  HashProj(const TokenEmbeddingOptions& o, const EmbeddingSize& size, const EmbeddingHost& host)
      : SignatureEmbedding(o, size, host),
        projection_(host.declare("bit_projection", {size.width, o.bits}, Init::normal(size.deviation))) {}

 private:
  Tensor code(const Tensor& bits, const Tensor&) const override {
    return linear_map(standardised(bits), standardised(projection_));
  }

  Tensor projection_;  // [W, B]
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_proj(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                               const EmbeddingHost& host) {
  return std::make_shared<HashProj>(options, size, host);
}

}  // namespace headshare
