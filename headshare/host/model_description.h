// A description says what is in a saved model.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headshare/models/checkpoint.h"

namespace headshare {

struct TokenizerDescription {
  std::string kind;
  std::optional<int64_t> vocabulary_size;  // nothing where words are hashed
  bool lossless = false;
  bool end_of_text = false;  // it has a token for the end of a text
};

struct TaskHeadDescription {
  std::string reads;  // the hidden states that it reads
  int64_t outputs = 0;
  std::vector<std::string> labels;
};

struct ModelDescription {
  fs::path path;  // the checkpoint
  std::string kind;
  uint64_t weights_bytes = 0;
  size_t tensors = 0;
  ModelSize size;
  bool keeps_cache = false;
  bool reads_a_source = false;  // it is an encoder-decoder
  std::optional<TokenizerDescription> tokenizer, source_tokenizer;
  std::optional<int64_t> step;  // the step of training at which the checkpoint was taken, if it was
  std::optional<TaskHeadDescription> task_head;
  std::vector<std::string> verbs;  // of a model of images: what takes it, as a command begins; else empty
  nlohmann::json options;          // the options that matter, by name
};

// Describes the checkpoint `directory`, whose options are `model`. Throws Error for weights that do not fit them.
ModelDescription describe_checkpoint(const fs::path& directory, const ModelOptions& model);

nlohmann::ordered_json to_json(const ModelDescription& model);

}  // namespace headshare
