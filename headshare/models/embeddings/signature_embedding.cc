#include "headshare/models/embeddings/signature_embedding.h"

#include <ATen/ATen.h>

namespace headshare {

SignatureEmbedding::SignatureEmbedding(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                       const EmbeddingHost& host)
    : types_(host.declare("type_embedding", {kTokenTypes, size.width}, Init::normal(size.deviation))),
      bits_(options.bits) {}

Tensor SignatureEmbedding::lookup(const TokenIds& tokens, LookupGradient) const {
  const Tensor types = token_types(tokens.ids);
  const Tensor found = code(signature_bits(codes_.of(tokens), bits_), types.flatten());
  return found.view({tokens.ids.size(0), tokens.ids.size(1), -1}) + at::embedding(types_, types);
}

}  // namespace headshare
