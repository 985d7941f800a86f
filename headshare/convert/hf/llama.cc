#include "headshare/convert/hf/llama.h"

#include "headshare/attention/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/json_input.h"

namespace headshare {
namespace {

const std::vector<HfKey>& llama_keys() {
  static const std::vector<HfKey> all = {{"vocab_size", "vocabulary"},
                                         {"hidden_size", "d-model"},
                                         {"num_hidden_layers", "layers"},
                                         {"num_attention_heads", "heads"},
                                         {"intermediate_size", "feed-forward-width"},
                                         {"max_position_embeddings", "context"},
                                         {"head_dim", "head-width"},
                                         {"rms_norm_eps", "norm-epsilon"},
                                         {"initializer_range", "init-deviation"},
                                         {"attention_dropout", "attention-dropout"}};
  return all;
}

// The defaults of a family's configuration class, and the keys that it reads.
struct LlamaKind {
  std::string name;
  int64_t vocabulary, feed_forward_width, context;
  std::optional<int64_t> groups = {};          // num_key_value_heads where it is absent; nothing: one for each head
  std::optional<int64_t> sliding_window = {};  // where it is absent
  bool asks_for_window = false;                // use_sliding_window switches it on, from max_window_layers on
  int64_t first_window_layer = 0;
  bool may_have_biases = false;  // attention_bias and mlp_bias
  bool input_bias = false;       // queries, keys and values have biases, the output has none
};

LlamaKind llama_kind(const std::string& model_type) {
  if (model_type == "mistral") {
    return {.name = "Mistral",
            .vocabulary = 32000,
            .feed_forward_width = 14336,
            .context = 131072,
            .groups = 8,
            .sliding_window = 4096};
  }
  if (model_type == "qwen2") {
    return {.name = "Qwen2",
            .vocabulary = 151936,
            .feed_forward_width = 22016,
            .context = 32768,
            .groups = 32,
            .sliding_window = 4096,
            .asks_for_window = true,
            .first_window_layer = 28,
            .input_bias = true};
  }
  return {.name = "Llama", .vocabulary = 32000, .feed_forward_width = 11008, .context = 2048, .may_have_biases = true};
}

// All three families have these sizes of a model of 7 billion parameters.
DecoderOptions llama_defaults(const LlamaKind& family) {
  DecoderOptions options{.vocabulary = family.vocabulary, .context = family.context, .layers = 32};
  options.attention.d_model = 4096;
  options.attention.heads = 32;
  options.feed_forward_width = family.feed_forward_width;
  options.positions = PositionKind::kRotary;
  options.norm = NormKind::kRms;
  options.norm_epsilon = 1e-6;
  return options;
}

FeedForwardKind gate(const HfConfig& config) {
  const nlohmann::json& name = config.value("hidden_act");
  if (name.is_null() || name == "silu" || name == "swish") return FeedForwardKind::kSwiglu;
  HS_CHECK(name == "gelu" || name == "gelu_pytorch_tanh" || name == "gelu_new", config.config_key("hidden_act"), " is ",
           brief_json(name), "; headshare has gates of silu and gelu");
  return FeedForwardKind::kGeglu;
}

// Groups of keys and values: a scheme of its own where there is one group, or as many as heads. null means as many as
// heads, whatever the family's default is.
void set_scheme(const HfConfig& config, const LlamaKind& family, AttentionOptions* attention) {
  const std::string key = "num_key_value_heads";
  const bool absent = !config.has(key);
  int64_t groups = absent ? family.groups.value_or(attention->heads) : attention->heads;
  read_keys(config, {{key.c_str(), "groups"}}, {field("groups", &groups, "", {.min = 1, .max = 1 << 16})});
  HS_CHECK(groups <= attention->heads && attention->heads % groups == 0, config.config_key(key), " is ", groups,
           absent ? join_text(" (", family.name, "'s default)") : "", " and num_attention_heads ", attention->heads,
           "; each group of keys serves equally many heads");
  attention->scheme = groups == attention->heads ? "mha" : groups == 1 ? "mqa" : "gqa";
  if (attention->scheme == "gqa") attention->own.get<GqaOptions>().groups = groups;
}

// transformers 5 keeps all about positions in rope_parameters; older files have rope_theta and rope_scaling, which
// counts first. Scaled or partial rotations change what a model computes, and neither parameters nor cache.
void read_rotation(const HfConfig& config, DecoderOptions* options, std::vector<std::string>* notes) {
  const auto is_set = [&](const char* key) { return !config.value(key).is_null() && !config.value(key).empty(); };
  const std::string key = is_set("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const std::string where = config.config_key(key);
  HS_CHECK(config.value(key).is_null() || config.value(key).is_object(), where, " is ", brief_json(config.value(key)),
           ", not an object");
  nlohmann::json rotation = nlohmann::json::object();
  rotation.update(config.value(key).is_null() ? rotation : config.value(key));
  const nlohmann::json base = rotation.value("rope_theta", config.value("rope_theta"));
  Fields list = stored_fields(*options);
  if (!base.is_null()) set_field(list, "rotary-base", field_text(base, where), config.config_key("rope_theta"));
  const nlohmann::json kind = rotation.value("rope_type", rotation.value("type", nlohmann::json("default")));
  for (const char* plain : {"rope_theta", "rope_type", "type"}) rotation.erase(plain);
  if (kind == "default" && rotation.empty()) return;
  notes->push_back(join_text(key, " (", brief_json(kind),
                             ") changes how positions turn queries and keys, not what the model costs"));
}

// The window bounds the cache, which is counted without it.
void note_window(const HfConfig& config, const LlamaKind& family, const DecoderOptions& options,
                 std::vector<std::string>* notes) {
  const std::string key = "sliding_window";
  if (!family.sliding_window || (family.asks_for_window && !config.flag("use_sliding_window", false))) return;
  const nlohmann::json& said = config.value(key);
  if (config.has(key) && said.is_null()) return;
  const int64_t window = said.is_null() ? *family.sliding_window : json_id(said, config.config_key(key));
  int64_t first = family.first_window_layer;
  if (family.asks_for_window) {
    read_keys(config, {{"max_window_layers", "layers"}}, {field("layers", &first, "", {.min = 0})});
  }
  if (first >= options.layers) return;
  notes->push_back(join_text(key, " is ", window, said.is_null() ? join_text(" (", family.name, "'s default)") : "",
                             ": ", first == 0 ? "the model caches" : join_text("the layers from ", first, " on cache"),
                             " no more tokens than that; the cache is counted without it"));
}

HfShape llama_shape(const HfConfig& config, const std::string& model_type) {
  refuse_what_we_lack(config);
  const LlamaKind family = llama_kind(model_type);
  refuse_other_classes(config, {family.name + "ForCausalLM", family.name + "Model"});
  DecoderOptions options = llama_defaults(family);
  options.feed_forward = gate(config);
  read_keys(config, llama_keys(), stored_fields(options));
  options.tie_embeddings = config.flag("tie_word_embeddings", false);
  options.feed_forward_bias = family.may_have_biases && config.flag("mlp_bias", false);
  options.attention.projection_bias =
      family.input_bias || (family.may_have_biases && config.flag("attention_bias", false));
  set_scheme(config, family, &options.attention);
  std::vector<std::string> notes;
  read_rotation(config, &options, &notes);
  note_window(config, family, options, &notes);
  HfShape shape{.options = resolve_read(config, options), .model_type = model_type};
  shape.counts.output_bias = !family.input_bias;
  shape.notes = std::move(notes);
  return shape;
}

HfModelType llama_row(const char* name, const char* model) {
  return {.name = name, .models = {model}, .kind = "decoder", .shape = llama_shape};
}

}  // namespace

HfModelType llama_type() { return llama_row("llama", "Llama"); }
HfModelType mistral_type() { return llama_row("mistral", "Mistral"); }
HfModelType qwen2_type() { return llama_row("qwen2", "Qwen2"); }

}  // namespace headshare
