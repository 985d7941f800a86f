#include "headshare/convert/hf/families/modernbert.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/families/layer_windows.h"

namespace headshare {
namespace {

constexpr const char* kModernBertMasked = "ModernBertForMaskedLM";
constexpr const char* kModernBertOutputLayer = "decoder.weight";

const std::vector<HfKey>& modernbert_keys() {
  static const std::vector<HfKey> keys = {{"vocab_size", "vocabulary"},
                                          {"max_position_embeddings", "context"},
                                          {"hidden_size", "d-model"},
                                          {"num_hidden_layers", "layers"},
                                          {"num_attention_heads", "heads"},
                                          {"intermediate_size", "feed-forward-width"},
                                          {"norm_eps", "norm-epsilon"},
                                          {"initializer_range", "init-deviation"},
                                          {"attention_bias", "projection-bias"},
                                          {"mlp_bias", "feed-forward-bias"},
                                          {"attention_dropout", "attention-dropout"},
                                          {"embedding_dropout", "dropout"}};
  return keys;
}

EncoderOptions modernbert_defaults() {
  EncoderOptions options = base_encoder();
  options.vocabulary = 50368;
  options.context = 8192;
  options.layers = 22;
  options.segments = 0;
  options.feed_forward_width = 1152;
  options.feed_forward_bias = options.attention.projection_bias = false;
  options.dropout = options.attention.attention_dropout = 0;
  options.norms = NormPlacement::kBeforeExceptFirst;
  options.norm_epsilon = 1e-5;
  options.positions = PositionKind::kRotary;
  return options;
}

// A configuration says which biases there are; ours are always there, and zeros where the model has none.
struct ModernBertBiases {
  bool norm = false, head = false, output = true;
};

ModernBertBiases read_biases(const HfConfig& config) {
  return {.norm = config.flag("norm_bias", false),
          .head = config.flag("classifier_bias", false),
          .output = config.flag("decoder_bias", true)};
}

FeedForwardKind gate_of(const HfConfig& config) {
  const std::string key = "hidden_activation";
  switch (read_activation(config, key, ActivationKind::kGeluErf)) {
    case ActivationKind::kGeluErf:
      return FeedForwardKind::kGegluErf;
    case ActivationKind::kGeluTanh:
      return FeedForwardKind::kGeglu;
    case ActivationKind::kSilu:
      return FeedForwardKind::kSwiglu;
    case ActivationKind::kRelu:
      break;
  }
  throw Error(config.config_key(key) + " is relu; headshare has gates of silu and gelu");
}

// A whole number of the configuration, `otherwise` where it is absent.
int64_t whole_number(const HfConfig& config, const std::string& key, int64_t otherwise) {
  const nlohmann::json& value = config.value(key);
  return value.is_null() ? otherwise : json_id(value, config.config_key(key));
}

// Tells of each layer whether it attends to all tokens.
std::vector<bool> global_layers(const HfConfig& config, int64_t layers) {
  if (const auto listed = listed_global_layers(config, layers)) return *listed;
  const std::string key = "global_attn_every_n_layers";
  const int64_t every = whole_number(config, key, 3);
  HS_CHECK(every >= 1, config.config_key(key), " is ", every, ", and must be at least 1");
  std::vector<bool> global;
  for (int64_t layer = 0; layer < layers; ++layer) global.push_back(layer % every == 0);
  return global;
}

void read_windows(const HfConfig& config, const std::vector<bool>& global, EncoderOptions* options) {
  if (std::find(global.begin(), global.end(), false) == global.end()) return;
  const std::string key = "local_attention";
  const int64_t window = whole_number(config, key, 128) / 2;
  HS_CHECK(window >= 1, config.config_key(key),
           " leaves a token nothing but itself; headshare's windows reach further");
  const int64_t said = whole_number(config, "sliding_window", window);
  HS_CHECK(said == window, config.config_key("sliding_window"), " is ", said, ", and half of ", key, " is ", window,
           "; remove the one that is wrong");
  HS_CHECK(set_local_windows(global, window, options), config.config_key("layer_types"),
           " has no regular order; headshare's local windows leave out every n-th layer alone (--global-every)");
}

// Says why no model of ours turns queries and keys so, led by file and key; "" where one does.
std::string why_not_rotations(const HfConfig& config) {
  const std::string way_out = "; headshare turns whole heads of ModernBERT, by the base of their layers alone";
  for (const char* key : {"rope_scaling", "partial_rotary_factor", "head_dim"}) {
    const nlohmann::json& value = config.value(key);
    if (!value.is_null()) return join_text(config.config_key(key), " is ", brief_json(value), way_out);
  }
  const nlohmann::json& all = config.value("rope_parameters");
  if (!all.is_object()) return "";
  const std::string where = config.config_key("rope_parameters");
  for (const auto& [type, own] : all.items()) {
    if (type != kGlobalLayer && type != kLocalLayer) return join_text(where, " has ", brief_text(type), way_out);
    if (!own.is_object()) continue;
    for (const auto& [key, value] : own.items()) {
      const bool known = key == "rope_theta" || (key == "rope_type" && value == "default");
      if (!known) return join_text(where, ": ", type, " has ", key, " ", brief_json(value), way_out);
    }
  }
  return "";
}

// The rotary base of a type of layers: in rope_parameters, or under the key that older files have.
double rotary_base_of(const HfConfig& config, const std::string& type, const std::string& old_key, double usual) {
  const nlohmann::json& all = config.value("rope_parameters");
  const std::string where = config.config_key("rope_parameters");
  HS_CHECK(all.is_null() || all.is_object(), where, " is ", brief_json(all), ", not an object");
  nlohmann::json base = nullptr;
  std::string key = config.config_key(old_key);
  if (all.is_object() && all.contains(type) && !all[type].is_null()) {
    const nlohmann::json& own = all[type];
    HS_CHECK(own.is_object(), where, ": ", type, " is ", brief_json(own), ", not an object");
    base = own.value("rope_theta", nlohmann::json());
    if (!base.is_null()) key = join_text(where, ": ", type, ": rope_theta");
  }
  HS_CHECK(!config.has(old_key) || !config.value(old_key).is_null(), config.config_key(old_key),
           " is null, which versions of transformers read differently; remove it or set it");
  if (base.is_null()) base = config.value(old_key);
  double found = usual;
  if (!base.is_null()) {
    Fields list = {field("base", &found, "", {.min = 1})};
    set_field(list, "base", field_text(base, key), key);
  }
  return found;
}

void read_rotations(const HfConfig& config, const std::vector<bool>& global, EncoderOptions* options) {
  const double of_global = rotary_base_of(config, kGlobalLayer, "global_rope_theta", 160000);
  const double of_local = rotary_base_of(config, kLocalLayer, "local_rope_theta", 10000);
  const bool some_global = std::find(global.begin(), global.end(), true) != global.end();
  options->attention.rotary_base = some_global ? of_global : of_local;
  if (options->attention.window && some_global && of_local != of_global) options->local_rotary_base = of_local;
}

// The options of the configuration, resolved; `head` says whether the masked-LM head is there.
EncoderOptions read_modernbert_options(const HfConfig& config, bool head) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"ModernBertModel", kModernBertMasked});
  refuse_other_encoders(config, "ModernBERT");
  EncoderOptions options = modernbert_defaults();
  read_keys(config, modernbert_keys(), stored_fields(options));
  options.feed_forward = gate_of(config);
  options.activation = read_activation(config, "classifier_activation", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  options.masked_head = head;
  const std::vector<bool> global = global_layers(config, options.layers);
  read_windows(config, global, &options);
  read_rotations(config, global, &options);
  return resolve_read(config, options);
}

// A part that has a weight, and a bias that may be missing: ours is zeros then.
void add_biased(const std::string& theirs, const std::string& ours, bool biased, TensorPlaces* places) {
  places->push_back({.theirs = theirs + ".weight", .ours = ours + ".weight"});
  places->push_back({.theirs = biased ? theirs + ".bias" : "", .ours = ours + ".bias"});
}

// Projections whose rows stand one below the other in one tensor, or one projection alone.
void add_projections(const std::string& theirs, const std::string& ours, const std::vector<std::string>& parts,
                     bool biased, TensorPlaces* places) {
  for (const std::string suffix : {".weight", ".bias"}) {
    if (suffix == ".bias" && !biased) continue;
    for (size_t i = 0; i < parts.size(); ++i) {
      places->push_back({.theirs = theirs + suffix,
                         .ours = join_text(ours, parts[i], suffix),
                         .part = static_cast<int64_t>(i),
                         .parts = static_cast<int64_t>(parts.size()),
                         .stacked = parts.size() > 1});
    }
  }
}

void add_modernbert_block(const EncoderOptions& o, const ModernBertBiases& biases, int64_t layer,
                          TensorPlaces* places) {
  const std::string theirs = join_text("layers.", layer, "."), ours = join_text("blocks.", layer, ".");
  if (layer > 0) add_biased(theirs + "attn_norm", ours + "attention_norm", biases.norm, places);
  const std::string scheme = ours + "attention.scheme.", inner = ours + "feed_forward.";
  add_projections(theirs + "attn.Wqkv", scheme, {"query", "key", "value"}, o.attention.projection_bias, places);
  add_projections(theirs + "attn.Wo", scheme, {"output"}, o.attention.projection_bias, places);
  add_biased(theirs + "mlp_norm", ours + "feed_forward_norm", biases.norm, places);
  add_projections(theirs + "mlp.Wi", inner, {"gate", "expand"}, o.feed_forward_bias, places);
  add_projections(theirs + "mlp.Wo", inner, {"contract"}, o.feed_forward_bias, places);
}

// Every tensor of ours and its name without the prefix "model.".
TensorPlaces modernbert_places(const EncoderOptions& o, const ModernBertBiases& biases) {
  TensorPlaces places = {{.theirs = "embeddings.tok_embeddings.weight", .ours = "token_embedding"}};
  if (o.masked_head && o.tie_embeddings) places.back().copies = {kModernBertOutputLayer};
  add_biased("embeddings.norm", "embedding_norm", biases.norm, &places);
  for (int64_t layer = 0; layer < o.layers; ++layer) add_modernbert_block(o, biases, layer, &places);
  add_biased("final_norm", "norm", biases.norm, &places);
  if (!o.masked_head) return places;
  add_biased("head.dense", "masked_head.dense", biases.head, &places);
  add_biased("head.norm", "masked_head.norm", biases.norm, &places);
  if (!o.tie_embeddings) places.push_back({.theirs = kModernBertOutputLayer, .ours = "masked_head.output_embedding"});
  places.push_back({.theirs = biases.output ? "decoder.bias" : "", .ours = "masked_head.output_bias"});
  return places;
}

// Names the biases that ours has and theirs has not.
std::vector<std::string> bias_notes(const ModernBertBiases& biases, bool head) {
  std::vector<std::string> parts;
  if (!biases.norm) parts.emplace_back("norms");
  if (head && !biases.head) parts.emplace_back("the head's layer");
  if (head && !biases.output) parts.emplace_back("the output layer");
  if (parts.empty()) return {};
  return {list_text(parts) + " of the model have no biases: ours are zeros, and train"};
}

void note_dropout(const HfConfig& config, const EncoderOptions& options, std::vector<std::string>* notes) {
  const nlohmann::json& inside = config.value("mlp_dropout");
  if (inside.is_null() || inside == options.dropout) return;
  notes->push_back(join_text("one dropout serves embeddings and residual branches: embedding_dropout ", options.dropout,
                             " is kept, mlp_dropout ", brief_json(inside), " is not"));
}

int64_t zero_biases(const EncoderOptions& o, const ModernBertBiases& biases) {
  const int64_t E = o.attention.d_model, head = o.masked_head ? 1 : 0;
  const int64_t norms = biases.norm ? 0 : (2 * o.layers + 1 + head) * E;  // the first layer has one norm
  return norms + head * ((biases.head ? 0 : E) + (biases.output ? 0 : o.vocabulary));
}

HfShape modernbert_shape(const HfConfig& config, const std::string& type) {
  const EncoderOptions options = read_modernbert_options(config, config.architecture() == kModernBertMasked);
  HfShape shape = encoder_shape(config, type, "ModernBertModel", options);
  if (const std::string refusal = why_not_rotations(config); !refusal.empty()) {
    shape.notes.push_back(refusal + "; what the model costs is the same, and its weights are not read");
  }
  shape.counts.zero_biases = zero_biases(options, read_biases(config));
  return shape;
}

ForeignModel open_modernbert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, without_prefix("model."));
  const EncoderOptions options = read_modernbert_options(*directory, mapping.has("head.dense.weight"));
  const std::string refusal = why_not_rotations(*directory);
  HS_CHECK(refusal.empty(), refusal);
  const ModernBertBiases biases = read_biases(*directory);
  ForeignModel foreign{.options = options, .notes = bias_notes(biases, options.masked_head)};
  note_dropout(*directory, options, &foreign.notes);
  take_places(modernbert_places(options, biases), options, &mapping);
  mapping.finish("ModernBERT", &foreign);
  return foreign;
}

}  // namespace

HfModelType modernbert_type() {
  return {.name = "modernbert",
          .models = {"ModernBERT"},
          .kind = "encoder",
          .shape = modernbert_shape,
          .open = open_modernbert};
}

}  // namespace headshare
