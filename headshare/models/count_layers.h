// Counts the parameters of models that have blocks and attention(layer): one layer of each kind is made, without
// memory.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "headshare/attention/scheme.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/metrics/model_size.h"
#include "headshare/models/blocks/block.h"
#include "headshare/models/blocks/options.h"
#include "headshare/models/embeddings/options.h"

namespace headshare {

inline constexpr int64_t kBytesOfFloat = 4;

// A LayerCount holds the counts of a model of one layer: those of the layer, and the rest.
struct LayerCount {
  AttentionCost attention;
  int64_t block = 0;
  int64_t rest = 0;
};

// Counts the parameters that the first layer lacks beside the others.
int64_t missing_in_first_layer(const TransformerOptions& options);

template <class Model, class Options>
LayerCount count_layer(Options one_block, const AttentionOptions& attention) {
  const DeclareOn meta(at::kMeta);
  one_block.layers = 1;
  one_block.layer_groups.reset();
  one_block.share_kv_layers = 1;
  one_block.attention = attention;
  one_block.layer_key_widths.clear();
  if (one_block.norms == NormPlacement::kBeforeExceptFirst) one_block.norms = NormPlacement::kBefore;
  const Model model(one_block);
  LayerCount count{.attention = model->attention(0)->scheme().cost()};
  for (const Declared& one : declared_parameters(*model)) {
    (one.name.starts_with("blocks.") ? count.block : count.rest) += one.tensor.numel();
  }
  return count;
}

// Layers differ in these widths, of collaborative attention and of mla, and in whose memory they read.
using LayerDifferences = std::tuple<std::optional<int64_t>, std::optional<int64_t>, MemoryUse>;
inline LayerDifferences layer_differences(const AttentionOptions& layer) {
  return {layer.key_width, layer.own.get<MlaOptions>().kv_latent, layer.memory};
}

// Counts the parameters and the cache of a model. Layers are alike except for these differences: one of each sort is
// made and counted as often as it occurs. Layers that share their parameters count once, and each fills a cache of its
// own.
template <class Model, class Options>
ModelSize count_layers(const Options& options) {
  const int64_t layers = own_layers(options);
  const int64_t depths = options.layers / layers;  // each of these layers runs at so many depths
  struct Alike {
    AttentionOptions attention;
    int64_t number = 0;
  };
  std::map<LayerDifferences, Alike> alike;  // layers with parameters of their own
  for (int64_t layer = 0; layer < layers; ++layer) {
    const AttentionOptions attention = layer_attention(options, layer);
    Alike& one = alike[layer_differences(attention)];
    if (one.number++ == 0) one.attention = attention;
  }
  ModelSize size;
  int64_t elements = 0;
  for (const auto& [differences, layer] : alike) {
    const int64_t number = layer.number;
    const LayerCount one = count_layer<Model>(options, layer.attention);
    if (size.total_parameters == 0) size.total_parameters = one.rest;
    // The cache has at most as many elements as the projections that fill it.
    const int64_t most = std::numeric_limits<int64_t>::max() / kBytesOfFloat;
    HS_CHECK(one.block <= (most - size.total_parameters) / (number * depths), "a model of ", options.layers,
             " layers with ", one.block, " parameters each cannot be counted in 64 bits; choose smaller sizes");
    size.attention_parameters += number * one.attention.parameters;
    size.attention_parameters_effective += number * one.attention.effective;
    size.total_parameters += number * one.block;
    elements += number * one.attention.cache_elements;
  }
  size.total_parameters -= missing_in_first_layer(options);
  size.feed_forward_width = *options.feed_forward_width;
  size.cache_elements_per_token = elements / (layers / options.share_kv_layers);
  size.cache_bytes_per_token = elements * depths * kBytesOfFloat;
  return size;
}

// Counts the parameters of a token embedding of a model of these options.
int64_t count_embedding(const TokenEmbeddingOptions& embedding, const TransformerOptions& options);

}  // namespace headshare
