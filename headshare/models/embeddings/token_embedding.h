// How ids become vectors: one interface, a file for each kind.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headshare/models/options.h"
#include "headshare/ops/layer.h"

namespace headshare {

// Of what is looked up, from the ids that were looked up.
enum class LookupGradient {
  kWhole,  // as large as the table
  kRows,   // sparse: added to a few rows of the gradient that a tied output layer gives; nothing else may be the only
           // one
};

class TokenEmbedding {
 public:
  virtual ~TokenEmbedding() = default;

  virtual Tensor lookup(const Tensor& ids, LookupGradient gradient) const = 0;  // int64 [B, T] -> [B, T, W]

  // What an output layer that is tied to it scores tokens with, [V, W].
  virtual const Tensor& table() const = 0;

  virtual c10::Device device() const = 0;
};

// Declares a parameter of the model itself, so that its name in checkpoints has no prefix.
using DeclareParameter = std::function<Tensor(const std::string& name, at::IntArrayRef sizes, Init start)>;

std::shared_ptr<TokenEmbedding> make_token_embedding(const TransformerOptions& resolved,
                                                     const DeclareParameter& declare);

// A row for each token: `token_embedding` [V, W].
std::shared_ptr<TokenEmbedding> make_table_embedding(const TransformerOptions& resolved,
                                                     const DeclareParameter& declare);

}  // namespace headshare
