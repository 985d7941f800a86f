// An encoder-decoder has these options: an encoder reads one sequence, and a decoder writes another.
#pragma once

#include <optional>
#include <string>

#include "headshare/models/blocks/options.h"

namespace headshare {

// A SinusoidOrder says how the sines and cosines of a position are laid out: in turns (Vaswani et al., the formulas of
// section 3.5), or all sines before all cosines (MarianMT, fairseq).
enum class SinusoidOrder { kInterleaved, kHalves };

// AttentionSites hold the options of the three sites with attention.
struct AttentionSites {
  AttentionOptions encoder;  // from the encoder to itself
  AttentionOptions decoder;  // from the decoder to itself
  AttentionOptions cross;    // from the decoder to the encoder's output
};

// A user sets these options besides those of all transformers. Schemes left at "auto" are the model's.
struct EncoderDecoderParts {
  std::string encoder_scheme = "auto";
  std::string decoder_scheme = "auto";
  std::string cross_scheme = "auto";
  std::optional<int64_t> decoder_layers = {};  // default as many as the encoder has
  bool scale_embeddings = true;                // token embeddings times sqrt(E) (Vaswani et al., section 3.4)
  bool share_embeddings = true;                // source and target have one token embedding
  bool scale_init = true;                      // weights start from N(0, 1 / E) instead of --init-deviation
  bool embedding_norm = false;                 // a norm over the embeddings of either side (BART)
  SinusoidOrder sinusoid_order = SinusoidOrder::kInterleaved;
};

// TargetMarks are the ids that have a meaning in decoding.
struct TargetMarks {
  int64_t start = 0;                           // stands before the first token of a target
  int64_t end = 0;                             // ends it
  std::optional<int64_t> forced_first = {};    // the first token of every target (BART's <s>)
  std::optional<int64_t> forced_last = {};     // the token at the greatest length (MarianMT's </s>)
  std::optional<int64_t> never_produced = {};  // padding, where it is a token of the target's vocabulary
};

struct EncoderDecoderOptions : TransformerOptions, EncoderDecoderParts {
  int64_t source_vocabulary = 0;  // tokens of the source; 0: as many as the target's `vocabulary`
  bool output_bias = false;       // the output layer has a bias for each token
  TargetMarks marks = {};
  std::optional<AttentionSites> sites = {};  // set by resolve
};

// Lists the options of EncoderDecoderParts that a user sets.
Fields fields(EncoderDecoderParts& parts);

// Lists every option that a user sets of the model.
Fields fields(EncoderDecoderOptions& options);

// Lists the options that a checkpoint's config.json holds: those of each site too.
Fields stored_fields(EncoderDecoderOptions& options);

// The schemes of the three sites, where `scheme` is that of sites whose own is auto.
std::vector<std::string> site_schemes(const EncoderDecoderParts& parts, const std::string& scheme);

// Fills in defaults and the attention of each site, checks sizes. Throws Error for what an encoder-decoder has not:
// layers that share parameters, factorised embeddings, key widths that differ between layers.
EncoderDecoderOptions resolve(EncoderDecoderOptions options);

template <>
const ModelKind& kind_of<EncoderDecoderOptions>();

// Returns the options of the blocks of either side from `resolved` ones.
TransformerOptions encoder_side(const EncoderDecoderOptions& resolved);
TransformerOptions decoder_side(const EncoderDecoderOptions& resolved);

}  // namespace headshare
