#include "headshare/convert/gguf/gguf_decoder.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/foreign/rotary_slowdown.h"
#include "headshare/convert/gguf/gguf_tokens.h"
#include "headshare/convert/hf/families/gpt2_form.h"
#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/tensor_places.h"

namespace headshare {
namespace {

constexpr const char* kGgufLlama = "llama";
constexpr const char* kGgufScaling = "headshare.rotary_scaling";  // our options, which only our reader reads

// Tensors of the graph that `gpt2` and `starcoder` have: queries, keys and values stand one below the other.
TensorPlaces gguf_gpt2_places(const DecoderOptions& options) {
  TensorPlaces places = {{.theirs = "token_embd.weight", .ours = "token_embedding"},
                         {.theirs = "position_embd.weight", .ours = "position_embedding"}};
  add_pair("output_norm", "norm", &places);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string theirs = join_text("blk.", layer, "."), ours = join_text("blocks.", layer, ".");
    for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
      for (const char* kind : {".weight", ".bias"}) {
        places.push_back({.theirs = theirs + "attn_qkv" + kind,
                          .ours = ours + "attention.scheme." + name + kind,
                          .part = index,
                          .parts = 3,
                          .stacked = true});
      }
    }
    for (const auto& [part, of_ours] : {std::pair("attn_norm", "attention_norm"),
                                        {"attn_output", "attention.scheme.output"},
                                        {"ffn_norm", "feed_forward_norm"},
                                        {"ffn_up", "feed_forward.expand"},
                                        {"ffn_down", "feed_forward.contract"}}) {
      add_pair(theirs + part, ours + of_ours, &places);
    }
  }
  return places;
}

TensorPlaces gguf_llama_places(const DecoderOptions& options) {
  TensorPlaces places = {{.theirs = "token_embd.weight", .ours = "token_embedding"},
                         {.theirs = "output_norm.weight", .ours = "norm.weight"}};
  const auto add = [&](const std::string& theirs, const std::string& ours, bool biased) {
    places.push_back({.theirs = theirs + ".weight", .ours = ours + ".weight"});
    if (biased) places.push_back({.theirs = theirs + ".bias", .ours = ours + ".bias"});
  };
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string theirs = join_text("blk.", layer, "."), ours = join_text("blocks.", layer, ".");
    for (const auto& [name, part] : {std::pair("q", "query"), {"k", "key"}, {"v", "value"}, {"output", "output"}}) {
      add(theirs + "attn_" + name, ours + "attention.scheme." + part, options.attention.projection_bias);
    }
    for (const auto& [name, part] : {std::pair("gate", "gate"), {"up", "expand"}, {"down", "contract"}}) {
      add(theirs + "ffn_" + name, ours + "feed_forward." + part, options.feed_forward_bias);
    }
    add(theirs + "attn_norm", ours + "attention_norm", false);
    add(theirs + "ffn_norm", ours + "feed_forward_norm", false);
  }
  return places;
}

TensorPlaces gguf_places(const DecoderOptions& options, const std::string& architecture) {
  TensorPlaces places = architecture == kGgufLlama ? gguf_llama_places(options) : gguf_gpt2_places(options);
  if (!options.tie_embeddings) places.push_back({.theirs = "output.weight", .ours = "output_embedding"});
  return places;
}

bool is_turned(const std::string& name) {
  return name.find("attn_q.") != std::string::npos || name.find("attn_k.") != std::string::npos;
}

// llama.cpp turns neighbouring dimensions of a head, we turn dimensions i and i + D / 2: rows are interleaved.
Tensor with_neighbours(const Tensor& rows, int64_t width) {
  return rows.view({-1, 2, width / 2, rows.dim() == 1 ? 1 : rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}
Tensor with_halves(const Tensor& rows, int64_t width) {
  return rows.view({-1, width / 2, 2, rows.dim() == 1 ? 1 : rows.size(1)}).transpose(1, 2).reshape(rows.sizes());
}

uint32_t count(int64_t value) { return static_cast<uint32_t>(value); }

void add_sizes(const DecoderOptions& options, const std::string& architecture, GgufFile* file) {
  const auto add = [&](const std::string& key, GgufValue value) {
    file->values.emplace_back(architecture + "." + key, std::move(value));
  };
  add("context_length", count(options.context));
  add("embedding_length", count(options.attention.d_model));
  add("block_count", count(options.layers));
  add("feed_forward_length", count(*options.feed_forward_width));
  add("vocab_size", count(options.vocabulary));
  add("attention.head_count", count(options.attention.heads));
  add("attention.head_count_kv", count(key_value_heads(options.attention)));
  const bool rms = architecture == kGgufLlama;
  add(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      static_cast<float>(options.norm_epsilon));
  if (!rms) return;
  const uint32_t width = count(*options.attention.head_width);
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"}) add(key, width);
  add("rope.freq_base", static_cast<float>(options.attention.rotary_base));
}

// Returns what llama.cpp reads of a scaled rotation: a factor for each pair of dimensions, whatever kind of scaling it
// comes from, and one on cosines and sines. Its keys for kinds do not say all: it takes yarn's betas to be 32 and 1.
GgufFile gguf_scaling(const AttentionOptions& attention) {
  GgufFile part;
  if (attention.rotary_scaling.kind == RotaryScalingKind::kNone) return part;
  part.tensors["rope_freqs.weight"] = rotary_slowdown(attention);
  if (const std::optional<double>& factor = attention.rotary_scaling.attention_factor) {
    part.values.emplace_back("llama.rope.scaling.attn_factor", static_cast<float>(*factor));
  }
  return part;
}

// Sets the scaling of a file that we wrote. Throws Error where what engines read says something else.
void read_gguf_scaling(const GgufFile& file, AttentionOptions* attention) {
  const bool scaled = std::any_of(file.values.begin(), file.values.end(),
                                  [](const auto& value) { return value.first == kGgufScaling; });
  if (!scaled) return;
  attention->rotary_scaling =
      noted_rotary_scaling(json_or_discarded(file.get<std::string>(kGgufScaling)), kGgufScaling);
  *attention = resolve(*attention);
  const GgufFile expected = gguf_scaling(*attention);
  for (const auto& [key, value] : expected.values) {
    HS_CHECK(file.value(key) == value, "'", key, "' of the GGUF file is not what '", kGgufScaling, "' asks for");
  }
  for (const auto& [name, tensor] : expected.tensors) {
    const auto found = file.tensors.find(name);
    HS_CHECK(found != file.tensors.end() && is_slowdown(found->second, *attention), "the tensor '", name,
             "' of the GGUF file is not what '", kGgufScaling, "' asks for");
  }
}

constexpr int64_t kMostGgufSize = 1 << 24;  // of what a file claims, whatever its tensors are

int64_t size_of(const GgufFile& file, const std::string& key) {
  const std::string full = file.get<std::string>("general.architecture") + "." + key;
  const auto size = static_cast<int64_t>(file.get<uint32_t>(full));
  if (size < 1 || size > kMostGgufSize) {
    throw DamagedFile(join_text("'", full, "' of the GGUF file is ", size, ", not within 1..", kMostGgufSize));
  }
  return size;
}

DecoderOptions options_of_gguf(const GgufFile& file) {
  const std::string architecture = file.get<std::string>("general.architecture");
  DecoderOptions options{.vocabulary = size_of(file, "vocab_size"),
                         .context = size_of(file, "context_length"),
                         .layers = size_of(file, "block_count")};
  HS_CHECK(options.layers <= static_cast<int64_t>(file.tensors.size()), "the GGUF file claims ", options.layers,
           " layers and has ", file.tensors.size(), " tensors");
  options.feed_forward_width = size_of(file, "feed_forward_length");
  AttentionOptions& attention = options.attention;
  attention.d_model = size_of(file, "embedding_length");
  attention.heads = size_of(file, "attention.head_count");
  const int64_t groups = size_of(file, "attention.head_count_kv");
  attention.scheme = groups == attention.heads ? "mha" : groups == 1 ? "mqa" : "gqa";
  if (attention.scheme == "gqa") attention.own.get<GqaOptions>().groups = groups;
  options.tie_embeddings = !file.tensors.contains("output.weight");
  attention.projection_bias = true;
  if (architecture != kGgufLlama) {
    options.norm_epsilon = file.get<float>(architecture + ".attention.layer_norm_epsilon");
    return resolve(options);
  }
  options.positions = PositionKind::kRotary;
  options.norm = NormKind::kRms;
  options.feed_forward = FeedForwardKind::kSwiglu;
  attention.head_width = size_of(file, "attention.key_length");
  attention.rotary_base = file.get<float>("llama.rope.freq_base");
  attention.rotary = true;
  read_gguf_scaling(file, &attention);
  attention.projection_bias = file.tensors.contains("blk.0.attn_q.bias");
  options.feed_forward_bias = file.tensors.contains("blk.0.ffn_up.bias");
  options.norm_epsilon = file.get<float>("llama.attention.layer_norm_rms_epsilon");
  return resolve(options);
}

// Ours, of this shape, of what stands at a place; `first` counts the rows of the parts above it.
Tensor read_place(const GgufFile& file, const TensorPlace& place, int64_t first, at::IntArrayRef shape, int64_t width) {
  const auto found = file.tensors.find(place.theirs);
  HS_CHECK(found != file.tensors.end(), "the GGUF file has no tensor '", place.theirs, "'");
  const Tensor& theirs = found->second;
  const bool fits = place.stacked ? theirs.dim() >= 1 && first + shape[0] <= theirs.size(0) : theirs.sizes() == shape;
  HS_CHECK(fits, "the tensor '", place.theirs, "' of the GGUF file has the shape ", theirs.sizes(),
           ", and its sizes ask for another");
  if (place.stacked) return theirs.narrow(0, first, shape[0]);
  return is_turned(place.theirs) ? with_halves(theirs, width) : theirs;
}

std::string reason_against(const DecoderOptions& options, const std::string& architecture) {
  const std::string name = "GGUF's " + architecture;
  if (architecture == kGgufLlama) {
    const std::vector<std::string> all = llama_form_objections(options, {.name = name, .scaling = true});
    if (!all.empty()) return all.front();
    return options.feed_forward == FeedForwardKind::kSwiglu
               ? ""
               : "the decoder's feed-forward part is not swiglu (--feed-forward), and " + name + " has swiglu alone";
  }
  const Gpt2Form form{.name = name, .schemes = {"mha", "gqa", "mqa"}, .only_gelu_tanh = true};
  const std::vector<std::string> all = gpt2_form_objections(options, form);
  return all.empty() ? "" : all.front();
}

}  // namespace

const std::vector<std::string>& gguf_architectures() {
  static const std::vector<std::string> all = {"gpt2", "starcoder", kGgufLlama};
  return all;
}

std::string gguf_architecture(const ModelOptions& options, const std::string& named) {
  if (!named.empty()) return named;
  return options.common().positions == PositionKind::kRotary ? kGgufLlama : "gpt2";
}

std::string why_not_gguf(const ModelOptions& options, const std::string& architecture) {
  const auto* decoder = options.find<DecoderOptions>();
  if (decoder == nullptr) {
    return join_text("the model is ", with_article(options.kind()), ", and only decoders are written as GGUF");
  }
  return reason_against(*decoder, gguf_architecture(options, architecture));
}

GgufFile gguf_of(const ModelToWrite& given, const std::string& architecture) {
  const bool is_llama = architecture == kGgufLlama;
  const ModelToWrite model = is_llama ? given : in_gpt2_form(given);
  const auto& options = model.options.as<DecoderOptions>();
  GgufFile file;
  file.values = {{"general.architecture", architecture},
                 {"general.file_type", uint32_t{0}},  // all float32
                 {kGgufMark, count(kModelFormatVersion)}};
  add_sizes(options, architecture, &file);
  add_gguf_tokens(model, &file);
  file.tensors = fill_places(gguf_places(options, architecture), model, "", {});
  if (!is_llama) return file;
  for (auto& [name, tensor] : file.tensors) {
    if (is_turned(name)) tensor = with_neighbours(tensor.contiguous(), *options.attention.head_width);
  }
  if (options.attention.rotary_scaling.kind == RotaryScalingKind::kNone) return file;
  GgufFile scaling = gguf_scaling(options.attention);
  file.values.insert(file.values.end(), scaling.values.begin(), scaling.values.end());
  file.values.emplace_back(kGgufScaling, rotary_scaling_note(options.attention.rotary_scaling).dump());
  file.tensors.merge(scaling.tensors);
  return file;
}

ForeignModel model_of_gguf(const GgufFile& file) {
  const DecoderOptions options = options_of_gguf(file);
  ForeignModel foreign{.options = options};
  NamedTensors ours;
  {
    const DeclareOn meta(at::kMeta);
    ours = model_tensors(*foreign.options.kind().make(foreign.options));
  }
  std::map<std::string, int64_t> first;  // of the next part, by the names of stacked tensors
  for (const TensorPlace& place : gguf_places(options, file.get<std::string>("general.architecture"))) {
    const at::IntArrayRef shape = ours.at(place.ours).sizes();
    const Tensor values = read_place(file, place, first[place.theirs], shape, *options.attention.head_width);
    foreign.tensors.push_back({place.theirs, "", place.ours, [values] { return values; }});
    first[place.theirs] += shape[0];
  }
  return foreign;
}

}  // namespace headshare
