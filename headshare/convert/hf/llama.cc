#include "headshare/convert/hf/llama.h"

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"

namespace headshare {
namespace {

const std::vector<HfKey>& keys() {
  static const std::vector<HfKey> all = {{"vocab_size", "vocabulary", true},
                                         {"hidden_size", "d-model", true},
                                         {"num_hidden_layers", "layers", true},
                                         {"num_attention_heads", "heads", true},
                                         {"intermediate_size", "feed-forward-width", true},
                                         {"max_position_embeddings", "context", true},
                                         {"head_dim", "head-width"},
                                         {"rms_norm_eps", "norm-epsilon"},
                                         {"initializer_range", "init-deviation"},
                                         {"rope_theta", "rotary-base"},
                                         {"attention_dropout", "attention-dropout"}};
  return all;
}

FeedForwardKind gate(const HfConfig& config) {
  const nlohmann::json& name = config.value("hidden_act");
  if (name.is_null() || name == "silu" || name == "swish") return FeedForwardKind::kSwiglu;
  HS_CHECK(name == "gelu" || name == "gelu_pytorch_tanh" || name == "gelu_new", config.config_key("hidden_act"), " is ",
           brief_json(name), "; headshare has gates of silu and gelu");
  return FeedForwardKind::kGeglu;
}

// Groups of keys and values: a scheme of its own where there is one group, or as many as heads.
void set_scheme(const HfConfig& config, AttentionOptions* attention) {
  const std::string where = config.config_key("num_key_value_heads");
  const nlohmann::json& value = config.value("num_key_value_heads");
  int64_t groups = attention->heads;
  if (!value.is_null()) {
    Fields list = {field("groups", &groups, "", {.min = 1, .max = 1 << 16})};
    set_field(list, "groups", field_text(value, where), where);
  }
  HS_CHECK(groups <= attention->heads && attention->heads % groups == 0, where, " is ", groups,
           " and num_attention_heads ", attention->heads, "; each group of keys serves equally many heads");
  attention->scheme = groups == attention->heads ? "mha" : groups == 1 ? "mqa" : "gqa";
  if (attention->scheme == "gqa") attention->groups = groups;
}

}  // namespace

HfShape llama_shape(const HfConfig& config, const std::string& model_type) {
  refuse_what_we_lack(config);
  const bool qwen = model_type == "qwen2";
  const std::string name = qwen ? "Qwen2" : model_type == "mistral" ? "Mistral" : "Llama";
  refuse_other_classes(config, {name + "ForCausalLM", name + "Model"});
  DecoderOptions options;
  options.positions = PositionKind::kRotary;
  options.norm = NormKind::kRms;
  options.norm_epsilon = 1e-6;
  options.feed_forward = gate(config);
  read_keys(config, keys(), stored_fields(options));
  options.tie_embeddings = config.flag("tie_word_embeddings", false);
  options.feed_forward_bias = config.flag("mlp_bias", false);
  options.attention.projection_bias = qwen || config.flag("attention_bias", false);
  set_scheme(config, &options.attention);
  HfShape shape{.options = resolve_read(config, options), .model_type = model_type};
  shape.output_bias = !qwen;
  const nlohmann::json& window = config.value("sliding_window");
  if (window.is_number() && config.flag("use_sliding_window", !qwen)) {
    shape.notes.push_back(join_text("sliding_window is ", brief_json(window),
                                    ": the model caches no more tokens than that; the cache is counted without it"));
  }
  return shape;
}

}  // namespace headshare
