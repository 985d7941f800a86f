#include <algorithm>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/families/layer_windows.h"
#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/families/rotation.h"

namespace headshare {

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

namespace {

DecoderOptions llama_defaults(const LlamaFamily& family) {
  DecoderOptions options{.vocabulary = family.vocabulary, .context = family.context, .layers = family.layers};
  options.attention.d_model = family.d_model;
  options.attention.heads = family.heads;
  options.attention.head_width = family.head_width;
  options.attention.qk_norm = family.qk_norm;
  options.feed_forward_width = family.feed_forward_width;
  options.positions = PositionKind::kRotary;
  options.norm = NormKind::kRms;
  options.norm_epsilon = 1e-6;
  return options;
}

// Gemma's files say "gelu" and mean its tanh form; transformers 4 read hidden_activation instead.
void read_gate(const HfConfig& config, const LlamaFamily& family, LlamaReading* reading) {
  const std::string key = "hidden_act";
  const bool silu_by_default = family.gate == FeedForwardKind::kSwiglu;
  const ActivationKind usual = silu_by_default ? ActivationKind::kSilu : ActivationKind::kGeluTanh;
  ActivationKind said = read_activation(config, key, usual);
  if (family.is_gemma && config.value(key) == "gelu") said = ActivationKind::kGeluTanh;
  HS_CHECK(said != ActivationKind::kRelu, config.config_key(key), " is relu; headshare has gates of silu and gelu");
  reading->options.feed_forward = said == ActivationKind::kSilu      ? FeedForwardKind::kSwiglu
                                  : said == ActivationKind::kGeluErf ? FeedForwardKind::kGegluErf
                                                                     : FeedForwardKind::kGeglu;
  const std::string old_key = "hidden_activation";
  if (family.is_gemma && read_activation(config, old_key, said) != said) {
    reading->refusals.push_back(join_text(config.config_key(old_key), " is ", brief_json(config.value(old_key)),
                                          " and ", key, " another; versions of transformers read one or the other"));
  }
}

// Groups of keys and values: a scheme of its own where there is one group, or as many as heads. null means as many as
// heads, whatever the family's default is.
void set_scheme(const HfConfig& config, const LlamaFamily& family, AttentionOptions* attention) {
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

// Tells of each layer of a family whose windows are asked for whether it attends to all tokens.
std::vector<bool> global_layers_of(const HfConfig& config, int64_t layers) {
  if (const auto listed = listed_global_layers(config, layers)) return *listed;
  int64_t first = 28;
  read_keys(config, {{"max_window_layers", "layers"}}, {field("layers", &first, "", {.min = 0})});
  std::vector<bool> global(static_cast<size_t>(layers), false);
  std::fill(global.begin(), global.begin() + std::min(first, layers), true);
  return global;
}

// Refuses the keys of windows in a family whose classes do not read them: what was meant is not known.
void refuse_window(const HfConfig& config, const std::string& key, const LlamaFamily& family, LlamaReading* reading) {
  const nlohmann::json& value = config.value(key);
  if (value.is_null()) return;
  reading->refusals.push_back(join_text(config.config_key(key), " is ", brief_json(value), ", and ", family.name,
                                        "ForCausalLM does not attend by it; remove it if the model was trained so"));
}

void read_window(const HfConfig& config, const LlamaFamily& family, LlamaReading* reading) {
  const std::string key = "sliding_window";
  if (family.window == LlamaWindow::kNone) return refuse_window(config, key, family, reading);
  const bool asked = family.window == LlamaWindow::kAsked;
  if (!asked) refuse_window(config, "layer_types", family, reading);
  const int64_t layers = reading->options.layers;
  const std::vector<bool> global =
      asked ? global_layers_of(config, layers) : std::vector<bool>(static_cast<size_t>(layers), false);
  const int64_t first = std::find(global.begin(), global.end(), false) - global.begin();
  const nlohmann::json& said = config.value(key);
  const bool switched_off = asked && !config.flag("use_sliding_window", false);
  if (first == layers) return;
  if (switched_off || (config.has(key) && said.is_null())) {
    if (!config.value("layer_types").is_null() && asked) {
      reading->refusals.push_back(join_text(config.config_key("layer_types"),
                                            " has sliding_attention, and no window is set (use_sliding_window, ", key,
                                            ")"));
    }
    return;
  }
  constexpr int64_t kUsual = 4096;  // in all families
  const int64_t window = said.is_null() ? kUsual : json_id(said, config.config_key(key));
  HS_CHECK(window >= 1, config.config_key(key), " is ", window, "; a token attends to itself at least");
  // The newest `window` tokens are the token itself and those before it.
  const bool hides = window < reading->options.context;
  if (hides && !set_local_windows(global, window - 1, &reading->options)) reading->bound = window;
  const bool listed = asked && !config.value("layer_types").is_null();
  const std::string who = listed       ? "some layers cache"
                          : first == 0 ? "the model caches"
                                       : join_text("the layers from ", first, " on cache");
  reading->notes.push_back(join_text(key, " is ", window,
                                     said.is_null() ? join_text(" (", family.name, "'s default)") : "", ": ", who,
                                     " no more tokens than that; the cache is counted without it"));
}

}  // namespace

LlamaReading read_llama_form(const HfConfig& config, const LlamaFamily& family) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {family.name + "ForCausalLM", family.name + "Model"});
  LlamaReading reading{.options = llama_defaults(family)};
  DecoderOptions& options = reading.options;
  read_gate(config, family, &reading);
  read_keys(config, llama_keys(), stored_fields(options));
  options.tie_embeddings = config.flag("tie_word_embeddings", family.tied);
  options.feed_forward_bias = family.may_have_mlp_bias && config.flag("mlp_bias", false);
  const bool asked = family.biases == LlamaBiases::kAsked && config.flag("attention_bias", false);
  options.attention.projection_bias = family.biases == LlamaBiases::kInputs || asked;
  set_scheme(config, family, &options.attention);
  if (const std::string refusal = read_rotation(config, &options); !refusal.empty()) {
    reading.refusals.push_back(refusal);
  }
  read_window(config, family, &reading);
  if (const std::string refusal = why_not_causal(config); !refusal.empty()) reading.refusals.push_back(refusal);
  const char* both_ways = "use_bidirectional_attention";  // Gemma's configurations have null here
  if (family.is_gemma && !config.value(both_ways).is_null() && config.flag(both_ways, false)) {
    reading.refusals.push_back(config.config_key(both_ways) +
                               " is true; headshare's decoders attend to what came before");
  }
  options = resolve_read(config, options);
  return reading;
}

HfShape llama_form_shape(const HfConfig& config, const LlamaFamily& family) {
  LlamaReading reading = read_llama_form(config, family);
  HfShape shape{.options = reading.options, .model_type = family.type, .notes = std::move(reading.notes)};
  shape.counts.output_bias = family.biases != LlamaBiases::kInputs;
  for (const std::string& refusal : reading.refusals) {
    shape.notes.push_back(refusal + "; what the model costs is the same, and its weights are not read");
  }
  return shape;
}

}  // namespace headshare
