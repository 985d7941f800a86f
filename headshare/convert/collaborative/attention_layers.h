// The attention layers of a model of any kind, as conversions take them: one by one, by name.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headshare/models/encoder_decoder.h"
#include "headshare/models/transformer.h"
#include "headshare/models/vision.h"

namespace headshare {

struct AttentionLayer {
  std::string name;  // "layer 3"; of an encoder-decoder "encoder layer 3", "decoder layer 2", "cross-attention layer 2"
  Attention attention{nullptr};
};

// The layers with parameters of their own. An encoder-decoder's are first its encoder's, then each decoder block's
// self-attention and cross-attention.
std::vector<AttentionLayer> attention_layers(const TransformerImpl& model);
std::vector<AttentionLayer> attention_layers(const VisionTransformerImpl& model);
std::vector<AttentionLayer> attention_layers(const EncoderDecoderImpl& model);

// The attention of a model; of an encoder-decoder, whose sites may differ, that of its encoder.
const AttentionOptions& attention_options(const TransformerOptions& resolved);
const AttentionOptions& attention_options(const EncoderDecoderOptions& resolved);

template <class Model>
using OptionsOf = std::decay_t<decltype(std::declval<const Model&>()->options())>;

// The same options with what `change` makes of each attention in its place.
using AttentionChange = std::function<AttentionOptions(const AttentionOptions&)>;
template <class Options>
Options with_attention(Options resolved, const AttentionChange& change) {
  resolved.attention = change(resolved.attention);
  return resolved;
}
EncoderDecoderOptions with_attention(EncoderDecoderOptions resolved, const AttentionChange& change);

}  // namespace headshare
