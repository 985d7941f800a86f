#include "headshare/models/count_layers.h"

#include <ATen/ATen.h>

#include "headshare/models/embeddings/token_embedding.h"

namespace headshare {

int64_t missing_in_first_layer(const TransformerOptions& o) {
  if (o.norms != NormPlacement::kBeforeExceptFirst) return 0;
  const DeclareOn meta(at::kMeta);
  int64_t parameters = 0;
  for (const Declared& one : declared_parameters(*block_norm(o))) parameters += one.tensor.numel();
  return parameters;
}

int64_t count_embedding(const TokenEmbeddingOptions& embedding, const TransformerOptions& o) {
  const DeclareOn meta(at::kMeta);
  int64_t parameters = 0;
  const auto declare = [&](const std::string&, at::IntArrayRef sizes, Init) {
    const Tensor made = at::empty(sizes, at::TensorOptions().device(at::kMeta));
    parameters += made.numel();
    return made;
  };
  make_token_embedding(embedding,
                       {.vocabulary = o.vocabulary, .width = embedding_width(o), .deviation = o.init_deviation},
                       {.declare = declare, .dropout = {}});
  return parameters;
}

}  // namespace headshare
