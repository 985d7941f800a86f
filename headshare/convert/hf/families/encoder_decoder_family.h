// MarianMT, BART and mBART have configurations with the same keys and tensors with the same names.
#pragma once

#include <optional>

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// A relative: what its class in transformers does whatever the configuration says, and the configuration's defaults.
struct EncoderDecoderFamily {
  std::string name;                    // "MarianMT", for messages
  std::string with_head;               // its class with an output layer
  std::string plain;                   // and the one without, to which the masses of published files belong too
  EncoderDecoderOptions defaults;      // not resolved
  std::optional<int64_t> first_token;  // bos_token_id by default
  int64_t unused_positions = 0;        // rows of learned positions that no token ever has
  bool may_separate = false;           // source and target may have vocabularies of their own
};

// Reads a configuration, and what generation_config.json beside it says of marks. Resolved; whether there is an output
// bias, and separate embeddings that config.json does not tell of, is for the tensors to say. Throws Error, naming file
// and key, for what the model cannot be: sides with different heads or widths, other norms than the family's.
EncoderDecoderOptions encoder_decoder_options(const HfConfig& config, const EncoderDecoderFamily& family);

// Sentences about what the files of a model say and ours has no place for: how it was trained, how to search.
std::vector<std::string> encoder_decoder_notes(const HfConfig& config, const EncoderDecoderOptions& options);

// The shape that a configuration gives, as transformers counts parameters: a bias of the output layer is none there;
// sinusoids and unused positions are some.
HfShape encoder_decoder_shape(const std::string& type, const EncoderDecoderOptions& options);

// The sentences say what keeps an encoder-decoder out of MarianMT's tensors, as HfModelType::objections has them.
std::vector<std::string> marian_objections(const EncoderDecoderOptions& resolved);

// Fills MarianMT's tensors: biases that the model lacks are 0, and positions stand in their tables, which transformers
// reads.
NamedTensors marian_tensors(const ModelToWrite& model);

// Fills config.json and generation_config.json.
void add_marian_config(const ModelToWrite& model, HfContent* content);

// Reads a directory that was filled so. Its tables of positions are read as learned ones.
ForeignModel read_marian_back(const std::shared_ptr<const HfDirectory>& directory, const EncoderDecoderFamily& family);

// Reads a directory.
ForeignModel open_encoder_decoder(const std::shared_ptr<const HfDirectory>& directory,
                                  const EncoderDecoderFamily& family);

}  // namespace headshare
