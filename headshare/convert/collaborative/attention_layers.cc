#include "headshare/convert/collaborative/attention_layers.h"

#include "headshare/base/error.h"
#include "headshare/convert/collaborative/model_change.h"

namespace headshare {

namespace {

void check_own_memory(const std::vector<AttentionLayer>& layers) {
  for (const AttentionLayer& one : layers) {
    HS_CHECK(one.attention->scheme().options().memory == MemoryUse::kOwn, one.name,
             " shares its keys and values with other layers (--share-kv-layers), which conversions do not rewrite");
  }
}

template <class Model>
std::vector<AttentionLayer> layers_of(const Model& model) {
  std::vector<AttentionLayer> layers;
  for (size_t i = 0; i < model.layers(); ++i) layers.push_back({layer_name(i), model.attention(i)});
  check_own_memory(layers);
  return layers;
}

}  // namespace

std::vector<AttentionLayer> attention_layers(const TransformerImpl& model) { return layers_of(model); }
std::vector<AttentionLayer> attention_layers(const VisionTransformerImpl& model) { return layers_of(model); }

std::vector<AttentionLayer> attention_layers(const EncoderDecoderImpl& model) {
  std::vector<AttentionLayer> layers;
  for (size_t i = 0; i < model.encoder()->layers(); ++i) {
    layers.push_back({join_text("encoder layer ", i + 1), model.encoder()->block(i)->attention});
  }
  for (size_t i = 0; i < model.decoder()->layers(); ++i) {
    const Block& block = model.decoder()->block(i);
    layers.push_back({join_text("decoder layer ", i + 1), block->attention});
    layers.push_back({join_text("cross-attention layer ", i + 1), block->cross_attention});
  }
  check_own_memory(layers);
  return layers;
}

const AttentionOptions& attention_options(const TransformerOptions& resolved) { return resolved.attention; }
const AttentionOptions& attention_options(const EncoderDecoderOptions& resolved) { return resolved.sites->encoder; }

EncoderDecoderOptions with_attention(EncoderDecoderOptions resolved, const AttentionChange& change) {
  AttentionSites& sites = *resolved.sites;
  for (AttentionOptions* site : {&sites.encoder, &sites.decoder, &sites.cross}) *site = change(*site);
  resolved.attention = sites.encoder;
  return resolved;
}

}  // namespace headshare
