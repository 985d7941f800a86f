// Decoders of GPT-2's form: learned positions, layer norms before each part, a plain feed-forward part and biases
// everywhere. GPT-2 and GPTBigCode have configurations with the same keys; other programs have formats for the form.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/hf/config.h"
#include "headshare/convert/hf/model_type.h"
#include "headshare/convert/hf/tensor_places.h"

namespace headshare {

// The keys of GPT2Config and GPTBigCodeConfig.
const std::vector<HfKey>& gpt2_keys();

// The options that a configuration of either class gives, not resolved: GPT-2's defaults where a key is absent.
DecoderOptions read_gpt2_form(const HfConfig& config);

// The tensor of an output layer that is not tied, and the prefix that the other names have in some files.
inline constexpr const char* kGpt2OutputLayer = "lm_head.weight";
inline constexpr const char* kGpt2Prefix = "transformer.";

// The places of the tables before the blocks, and of the output layer.
TensorPlaces begin_gpt2_places(const DecoderOptions& options);

// The notes on such a configuration: what differs in training.
std::vector<std::string> gpt2_form_notes(const HfConfig& config, const DecoderOptions& options);

// A Gpt2Form says what a format of this form holds.
struct Gpt2Form {
  std::string name = "GPT-2";
  std::vector<std::string> schemes = {"mha"};
  bool may_be_unscaled = false;  // scores need no scale
  bool only_gelu_tanh = false;   // no other activation
};

// The sentences say what keeps a decoder out of the form. Biases that it lacks are written as zeros, and positions that
// are no parameters as a table.
std::vector<std::string> gpt2_form_objections(const DecoderOptions& resolved, const Gpt2Form& form);

// The model with the tensors that the form has and a decoder may lack: biases of 0, a table of positions.
ModelToWrite in_gpt2_form(ModelToWrite model);

// The beginning of config.json of either class.
nlohmann::json begin_gpt2_config(const std::string& type, const std::string& architecture, const ModelToWrite& model);

}  // namespace headshare
