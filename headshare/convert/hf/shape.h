// The shape of a Hugging Face model from its config.json alone: what it costs can be told without its weights.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/hf/config.h"
#include "headshare/models/cost.h"

namespace headshare {

struct HfShape {
  ModelOptions options;  // resolved
  std::string model_type = {};
  CountDifference counts = {};
  std::vector<std::string> notes = {};  // sentences: what is counted otherwise than one may think
};

// The model types that are read: "bert", "gpt2", "llama", ...
std::vector<std::string> shape_types();

// Reads a config.json, or the one in a directory. Throws Error, naming the file and the key, for a directory without
// one, an unknown model type (with those known), missing keys and values that no model has.
HfShape read_hf_shape(const fs::path& path);

}  // namespace headshare
