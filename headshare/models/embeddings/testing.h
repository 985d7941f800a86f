// For tests only: a MadeEmbedding is a token embedding without a model around it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headshare/models/embeddings/token_embedding.h"
#include "headshare/ops/layer.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {

inline std::shared_ptr<Tokenizer> hash_tokenizer(TokenizerKind kind = TokenizerKind::kHashMd) {
  return train_tokenizer({.kind = kind}, [](std::string*) { return false; });
}

// Returns the ids of a text, int64 [1, T].
inline Tensor id_row(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int64_t> ids;
  for (const int32_t id : tokenizer.encode(text)) ids.push_back(id);
  return at::tensor(ids, at::kLong).unsqueeze(0);
}

// A ParameterHost is a module of parameters alone; a test may set its dropout, else there is none.
class ParameterHost : public Layer {
 public:
  std::function<Tensor(const Tensor&, uint64_t part)> dropout = [](const Tensor& x, uint64_t) { return x; };

  EmbeddingHost host() {
    return {.declare = [this](const std::string& name, at::IntArrayRef sizes,
                              Init init) { return declare(name, sizes, init); },
            .dropout = [this](const Tensor& x, uint64_t part) { return dropout(x, part); }};
  }
};

struct MadeEmbedding {
  std::shared_ptr<ParameterHost> host = std::make_shared<ParameterHost>();
  std::shared_ptr<Tokenizer> tokenizer = hash_tokenizer();
  std::shared_ptr<TokenEmbedding> embedding;

  explicit MadeEmbedding(const TokenEmbeddingOptions& options, int64_t width = 6) {
    embedding = make_token_embedding(options, {.vocabulary = 5, .width = width, .deviation = 1}, host->host());
    initialise(*host, 1);
    embedding->read_words(tokenizer);
  }
  Tensor rows(const std::string& text) const {  // [T, W]
    return embedding->lookup({.ids = id_row(*tokenizer, text)}, LookupGradient::kWhole)[0];
  }
  std::map<std::string, Tensor> in_double() const {
    std::map<std::string, Tensor> parameters;
    for (const Declared& one : declared_parameters(*host)) {
      parameters[one.name] = one.tensor.detach().to(at::kDouble).requires_grad_(true);
    }
    return parameters;
  }
};

}  // namespace headshare
