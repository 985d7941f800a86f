#include "headshare/convert/ctranslate2/ct2_decoder.h"

#include <ATen/ATen.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/convert/foreign/rotary_slowdown.h"
#include "headshare/convert/hf/families/gpt2_form.h"
#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/tensor_places.h"

namespace headshare {
namespace {

constexpr const char* kCt2Decoder = "decoder/";
constexpr const char* kCt2Factors[] = {"rotary_scaling_long_factor", "rotary_scaling_short_factor"};

bool is_ct2_llama(const DecoderOptions& options) { return options.positions == PositionKind::kRotary; }

// Weights and biases; norms have gamma and beta.
void add_ct2_norm(const std::string& theirs, const std::string& ours, bool biased, TensorPlaces* places) {
  places->push_back({.theirs = theirs + "/gamma", .ours = ours + ".weight"});
  if (biased) places->push_back({.theirs = theirs + "/beta", .ours = ours + ".bias"});
}
void add_ct2_linear(const std::string& theirs, const std::string& ours, bool biased, TensorPlaces* places) {
  places->push_back({.theirs = theirs + "/weight", .ours = ours + ".weight"});
  if (biased) places->push_back({.theirs = theirs + "/bias", .ours = ours + ".bias"});
}

void add_ct2_attention(const std::string& theirs, const std::string& scheme, bool biased, TensorPlaces* places) {
  for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
    for (const std::string kind : {"weight", "bias"}) {
      if (kind == "bias" && !biased) continue;
      places->push_back({.theirs = theirs + "linear_0/" + kind,
                         .ours = scheme + name + "." + kind,
                         .part = index,
                         .parts = 3,
                         .stacked = true});
    }
  }
  add_ct2_linear(theirs + "linear_1", scheme + "output", biased, places);
}

void add_ct2_layer(const DecoderOptions& options, int64_t layer, TensorPlaces* places) {
  const std::string theirs = join_text(kCt2Decoder, "layer_", layer, "/"), ours = join_text("blocks.", layer, ".");
  const bool llama = is_ct2_llama(options);
  const bool biased = !llama || options.attention.projection_bias;
  add_ct2_norm(theirs + "self_attention/layer_norm", ours + "attention_norm", !llama, places);
  add_ct2_attention(theirs + "self_attention/", ours + "attention.scheme.", biased, places);
  add_ct2_norm(theirs + "ffn/layer_norm", ours + "feed_forward_norm", !llama, places);
  const bool wide = !llama || options.feed_forward_bias;
  add_ct2_linear(theirs + "ffn/linear_0", ours + (llama ? "feed_forward.gate" : "feed_forward.expand"), wide, places);
  if (llama) add_ct2_linear(theirs + "ffn/linear_0_noact", ours + "feed_forward.expand", wide, places);
  add_ct2_linear(theirs + "ffn/linear_1", ours + "feed_forward.contract", wide, places);
}

TensorPlaces ct2_places(const DecoderOptions& options) {
  const std::string decoder = kCt2Decoder;
  const bool llama = is_ct2_llama(options);
  TensorPlaces places = {{.theirs = decoder + "embeddings/weight", .ours = "token_embedding"}};
  if (!llama) places.push_back({.theirs = decoder + "position_encodings/encodings", .ours = "position_embedding"});
  if (!options.tie_embeddings) places.push_back({.theirs = decoder + "projection/weight", .ours = "output_embedding"});
  for (int64_t layer = 0; layer < options.layers; ++layer) add_ct2_layer(options, layer, &places);
  add_ct2_norm(decoder + "layer_norm", "norm", !llama, &places);
  return places;
}

template <class T>
Tensor scalar(T value) {
  return at::scalar_tensor(value, c10::CppTypeToScalarType<T>::value);
}

// Returns what scores are multiplied by, the factor on rotated queries and keys included.
float ct2_queries_scale(const AttentionOptions& attention) {
  const double factor = attention.rotary_scaling.attention_factor.value_or(1);
  return static_cast<float>(*attention.scale * factor * factor);
}

// CTranslate2's numbers of activations.
int8_t ct2_activation(const DecoderOptions& options) {
  constexpr int8_t kRelu = 0, kGeluTanh = 1, kSwish = 2, kGelu = 3;
  if (options.feed_forward == FeedForwardKind::kSwiglu) return kSwish;
  if (options.feed_forward == FeedForwardKind::kGeglu) return kGeluTanh;
  if (options.feed_forward == FeedForwardKind::kGegluErf) return kGelu;
  switch (options.activation) {
    case ActivationKind::kGeluTanh:
      return kGeluTanh;
    case ActivationKind::kGeluErf:
      return kGelu;
    case ActivationKind::kRelu:
      return kRelu;
    case ActivationKind::kSilu:
      return kSwish;
  }
  throw Error("unknown activation");
}

// Gives a layer a factor for each pair of dimensions, whatever kind of scaling it comes from. CTranslate2 takes the
// long factors beyond a context that is left at 0, and the short ones must be there. A factor on cosines and sines
// counts twice in each score.
void add_ct2_scaling(const AttentionOptions& attention, const std::string& site, Ct2File* file) {
  if (attention.rotary_scaling.kind == RotaryScalingKind::kNone) return;
  const std::string where = kCt2Decoder + site;
  constexpr int8_t kFactors = 1;  // RotaryScalingType.Su
  file->variables[where + "rotary_scaling_type"] = scalar(kFactors);
  for (const char* name : kCt2Factors) file->variables[where + name] = rotary_slowdown(attention);
  if (!attention.rotary_scaling.attention_factor) return;
  file->variables[where + "queries_scale"] = scalar(ct2_queries_scale(attention));
}

void add_ct2_scalars(const DecoderOptions& options, bool one_head_cache, Ct2File* file) {
  const auto set = [&](const std::string& name, const Tensor& value) { file->variables[kCt2Decoder + name] = value; };
  const AttentionOptions& attention = options.attention;
  set("num_heads", scalar(static_cast<int16_t>(attention.heads)));
  set("activation", scalar(ct2_activation(options)));
  set("pre_norm", scalar(int8_t{1}));
  set("alignment_layer", scalar(int16_t{-1}));
  set("alignment_heads", scalar(int16_t{1}));
  for (const char* off :
       {"alibi", "alibi_use_positive_positions", "scale_alibi", "scale_embeddings", "start_from_zero_embedding"}) {
    set(off, scalar(int8_t{0}));
  }
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string site = join_text("layer_", layer, "/self_attention/");
    set(site + "head_dim", scalar(static_cast<int32_t>(*attention.head_width)));
    const int64_t groups = key_value_heads(attention);
    if (groups != attention.heads) set(site + "num_heads_kv", scalar(static_cast<int32_t>(groups)));
    if (one_head_cache) set(site + "multi_query", scalar(int8_t{1}));
    if (!is_ct2_llama(options)) continue;
    set(site + "rotary_dim", scalar(int32_t{0}));
    set(site + "rotary_interleave", scalar(int8_t{0}));
    set(site + "rotary_base", scalar(static_cast<float>(attention.rotary_base)));
    add_ct2_scaling(attention, site, file);
  }
}

constexpr int64_t kMostCt2Size = 1 << 24;  // of what a file claims, whatever its variables are

int64_t checked_size(int64_t size, const std::string& what) {
  HS_CHECK(size >= 1 && size <= kMostCt2Size, what, " of the CTranslate2 model is ", size, ", not within 1..",
           kMostCt2Size);
  return size;
}

// The rows of a weight.
int64_t rows_of(const Ct2File& file, const std::string& name) {
  const Tensor& weight = file.variable(name);
  HS_CHECK(weight.dim() == 2, "the variable '", name, "' of the CTranslate2 model is no matrix");
  return checked_size(weight.size(0), name);
}

template <class T>
T number_of(const Ct2File& file, const std::string& name) {
  const Tensor& value = file.variable(kCt2Decoder + name);
  HS_CHECK(value.numel() == 1, "the variable '", name, "' of the CTranslate2 model is no number");
  return value.item().to<T>();
}

int64_t layers_of(const Ct2File& file) {
  int64_t layers = 0;
  while (file.has(join_text(kCt2Decoder, "layer_", layers, "/self_attention/linear_1/weight"))) ++layers;
  return layers;
}

ActivationKind activation_of(int8_t number) {
  constexpr ActivationKind kByNumber[] = {ActivationKind::kRelu, ActivationKind::kGeluTanh, ActivationKind::kSilu,
                                          ActivationKind::kGeluErf};
  HS_CHECK(number >= 0 && number < 4, "the CTranslate2 model has activation ", int{number});
  return kByNumber[number];
}

// Throws Error unless every layer is turned as our options say.
void check_ct2_scaling(const Ct2File& file, const DecoderOptions& options) {
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    Ct2File expected;
    const std::string site = join_text("layer_", layer, "/self_attention/");
    add_ct2_scaling(options.attention, site, &expected);
    for (const auto& [name, value] : expected.variables) {
      const Tensor& theirs = file.variable(name);
      const bool same = value.dim() == 1 ? is_slowdown(theirs, options.attention)
                                         : theirs.numel() == 1 && theirs.item<float>() == value.item<float>();
      HS_CHECK(same, "the variable '", name,
               "' of the CTranslate2 model is not what rotary_scaling in config.json asks for");
    }
  }
}

DecoderOptions options_of_ct2(const Ct2File& file, const Ct2Settings& settings) {
  const std::string first = "layer_0/self_attention/";
  const std::string embedding = "decoder/embeddings/weight";
  DecoderOptions options{.vocabulary = rows_of(file, embedding),
                         .context = checked_size(settings.context, "max_position_embeddings"),
                         .layers = checked_size(layers_of(file), "the number of layers")};
  AttentionOptions& attention = options.attention;
  attention.d_model = checked_size(file.variable(embedding).size(1), embedding);
  attention.heads = checked_size(number_of<int64_t>(file, "num_heads"), "num_heads");
  attention.head_width = checked_size(number_of<int64_t>(file, first + "head_dim"), "head_dim");
  const bool shares = file.has(kCt2Decoder + first + "num_heads_kv");
  const int64_t groups = shares ? number_of<int64_t>(file, first + "num_heads_kv") : attention.heads;
  attention.scheme = !shares ? "mha" : groups == 1 ? "mqa" : "gqa";
  if (attention.scheme == "gqa") attention.own.get<GqaOptions>().groups = groups;
  attention.projection_bias = file.has(kCt2Decoder + first + "linear_0/bias");
  options.feed_forward_width = rows_of(file, "decoder/layer_0/ffn/linear_0/weight");
  options.feed_forward_bias = file.has("decoder/layer_0/ffn/linear_0/bias");
  options.norm_epsilon = settings.norm_epsilon;
  options.tie_embeddings = file.aliases.contains("decoder/projection/weight");
  const auto activation = number_of<int8_t>(file, "activation");
  if (!file.has(kCt2Decoder + first + "rotary_dim")) {
    options.activation = activation_of(activation);
    return resolve(options);
  }
  options.positions = PositionKind::kRotary;
  options.norm = NormKind::kRms;
  options.feed_forward = activation == 2   ? FeedForwardKind::kSwiglu
                         : activation == 3 ? FeedForwardKind::kGegluErf
                                           : FeedForwardKind::kGeglu;
  attention.rotary_base = number_of<float>(file, first + "rotary_base");
  attention.rotary_scaling = settings.scaling;
  options = resolve(options);
  check_ct2_scaling(file, options);
  return options;
}

}  // namespace

std::string why_not_ct2(const ModelOptions& options) {
  const auto* decoder = options.find<DecoderOptions>();
  if (decoder == nullptr) {
    return join_text("the model is ", with_article(options.kind()), ", and only decoders are written for CTranslate2");
  }
  const std::vector<std::string> all =
      is_ct2_llama(*decoder)
          ? llama_form_objections(*decoder, {.name = "CTranslate2", .scaling = true})
          : gpt2_form_objections(*decoder, {.name = "CTranslate2", .schemes = {"mha", "gqa", "mqa"}});
  return all.empty() ? "" : all.front();
}

bool ct2_caches_one_head(const ModelOptions& options, const std::string& form) {
  return options.common().attention.scheme == "mqa" && form != "scoring";
}

Ct2File ct2_of(const ModelToWrite& given, bool one_head_cache) {
  const bool llama = is_ct2_llama(given.options.as<DecoderOptions>());
  const ModelToWrite model = llama ? given : in_gpt2_form(given);
  const auto& options = model.options.as<DecoderOptions>();
  Ct2File file{.specification = "TransformerDecoderSpec", .revision = 8};
  file.variables = fill_places(ct2_places(options), model, "", {});
  add_ct2_scalars(options, one_head_cache, &file);
  if (options.tie_embeddings) file.aliases["decoder/projection/weight"] = "decoder/embeddings/weight";
  return file;
}

ForeignModel model_of_ct2(const Ct2File& file, const Ct2Settings& settings) {
  const DecoderOptions options = options_of_ct2(file, settings);
  ForeignModel foreign{.options = options};
  NamedTensors ours;
  {
    const DeclareOn meta(at::kMeta);
    ours = model_tensors(*foreign.options.kind().make(foreign.options));
  }
  std::map<std::string, int64_t> first;  // of the next part, by the names of stacked variables
  for (const TensorPlace& place : ct2_places(options)) {
    Tensor values = file.variable(place.theirs);
    const int64_t rows = ours.at(place.ours).size(0);
    if (place.stacked) {
      HS_CHECK(values.dim() >= 1 && first[place.theirs] + rows <= values.size(0), "the variable '", place.theirs,
               "' has the shape ", values.sizes(), ", and a model of these sizes has more rows");
      values = values.narrow(0, first[place.theirs], rows);
      first[place.theirs] += rows;
    }
    foreign.tensors.push_back({place.theirs, "", place.ours, [values] { return values; }});
  }
  return foreign;
}

}  // namespace headshare
