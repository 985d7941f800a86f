// The shape of a Hugging Face model from its config.json alone: what it costs can be told without its weights.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/hf/config.h"

namespace headshare {

struct HfShape {
  ModelOptions options;  // resolved
  std::string model_type = {};
  bool output_bias = true;   // false: where our options have biases, the model has none on output projections
  int64_t fixed_tables = 0;  // of sinusoids, which are parameters there
  int64_t unused_rows = 0;   // of embeddings, which no token ever has
  std::vector<std::string> notes = {};  // sentences: what is counted otherwise than one may think
};

// Parameters that such options have and a model of that shape lacks; below 0 where it has more.
int64_t surplus_parameters(const HfShape& shape, const TransformerOptions& resolved);

// The model types that are read: "bert", "gpt2", "llama", ...
std::vector<std::string> shape_types();

// Reads a config.json, or the one in a directory. Throws Error, naming the file and the key, for a directory without
// one, an unknown model type (with those known), missing keys and values that no model has.
HfShape read_hf_shape(const fs::path& path);

}  // namespace headshare
