// A checkpoint of ours that goes out: what every format writes.
#pragma once

#include <string>
#include <vector>

#include "headshare/models/checkpoint.h"

namespace headshare {

struct ModelToWrite {
  ModelOptions options;           // resolved
  NamedTensors tensors;           // under our names
  TokenizerPair tokenizers = {};  // null where the checkpoint has none
  // A checkpoint's model may hash words; the written one then has a table instead: the special tokens' rows and one for
  // each of these words (closed_vocabulary.h). The list is empty for every other model.
  std::vector<std::string> words = {};
};

// The tokenizers as they stand in a checkpoint; the source's is the target's where it has none of its own.
TokenizerPair tokenizers_in(const fs::path& checkpoint);

// The options of the model that model_to_write() gives, from config.json alone. Throws Error for words where the model
// has a vocabulary.
ModelOptions options_to_write(const fs::path& checkpoint, const std::vector<std::string>& words);

// Reads a checkpoint directory; `words` is empty, or the list that an encoder which hashes words is closed over.
ModelToWrite model_to_write(const fs::path& checkpoint, const std::vector<std::string>& words);

// Throws Error, naming the tensor and the way out, unless all values are finite.
void check_writable_values(const ModelToWrite& model, const std::string& tensor);

}  // namespace headshare
