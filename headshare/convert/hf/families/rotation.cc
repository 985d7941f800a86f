#include "headshare/convert/hf/families/rotation.h"

#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {
namespace {

// A rope dictionary of config.json.
struct Rotation {
  std::string where;  // file and key, to lead messages
  nlohmann::json values = nlohmann::json::object();

  nlohmann::json value(const std::string& key) const { return values.value(key, nlohmann::json()); }
};

Rotation rotation_of(const HfConfig& config) {
  const nlohmann::json& old = config.value("rope_scaling");
  const std::string key = old.is_null() || old.empty() ? "rope_parameters" : "rope_scaling";
  Rotation rotation{.where = config.config_key(key)};
  const nlohmann::json& value = config.value(key);
  HS_CHECK(value.is_null() || value.is_object(), rotation.where, " is ", brief_json(value), ", not an object");
  if (!value.is_null()) rotation.values = value;
  return rotation;
}

const std::map<std::string, RotaryScalingKind>& scaling_types() {
  static const std::map<std::string, RotaryScalingKind> types = {{"default", RotaryScalingKind::kNone},
                                                                 {"linear", RotaryScalingKind::kLinear},
                                                                 {"llama3", RotaryScalingKind::kLlama3},
                                                                 {"yarn", RotaryScalingKind::kYarn}};
  return types;
}

std::string rope_type_name(RotaryScalingKind kind) {
  for (const auto& [name, one] : scaling_types()) {
    if (one == kind) return name;
  }
  throw Error("unknown rotary scaling");
}

// Keys and our options. transformers takes 0 for betas as absent.
const std::vector<HfKey>& scaling_keys() {
  static const std::vector<HfKey> keys = {{"factor", "rotary-factor"},
                                          {"original_max_position_embeddings", "rotary-original-context"},
                                          {"low_freq_factor", "rotary-low-frequency-factor"},
                                          {"high_freq_factor", "rotary-high-frequency-factor"},
                                          {"beta_fast", "rotary-beta-fast"},
                                          {"beta_slow", "rotary-beta-slow"},
                                          {"attention_factor", "rotary-attention-factor"},
                                          {"truncate", "rotary-truncate"}};
  return keys;
}

// Refuses keys that no kind of rotation reads, and a part of each head: these types turn whole heads.
std::string why_not_rotation(const HfConfig& config, const Rotation& rotation) {
  const std::string partial = "partial_rotary_factor";
  const nlohmann::json part = rotation.values.value(partial, config.value(partial));
  if (!part.is_null() && part != 1) {
    return join_text(rotation.where, ": ", partial, " is ", brief_json(part),
                     ", and transformers turns whole heads in models of this type");
  }
  std::vector<std::string> known = {partial, "rope_theta", "rope_type", "type", "mscale", "mscale_all_dim"};
  for (const HfKey& key : scaling_keys()) known.emplace_back(key.theirs);
  for (const auto& [key, value] : rotation.values.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return join_text(rotation.where, " has ", brief_text(key), ", which headshare does not know");
  }
  return "";
}

// The context before the scaling: the configuration's own key counts first, and the whole context where there is none.
void set_original_context(const HfConfig& config, const Rotation& rotation, DecoderOptions* options) {
  const std::string key = "original_max_position_embeddings";
  std::optional<int64_t>& original = options->attention.rotary_scaling.original_context;
  if (const nlohmann::json& own = config.value(key); !own.is_null()) {
    Fields list = stored_fields(*options);
    set_field(list, "rotary-original-context", field_text(own, config.config_key(key)), config.config_key(key));
  } else if (rotation.value(key).is_null()) {
    original = options->context;
  }
}

double mscale_of(const Rotation& rotation, const std::string& key) {
  const nlohmann::json value = rotation.value(key);
  HS_CHECK(value.is_null() || value.is_number(), rotation.where, ": ", key, " is ", brief_json(value),
           ", not a number");
  return value.is_null() ? 0 : value.get<double>();
}

void read_scaling(const HfConfig& config, const Rotation& rotation, DecoderOptions* options) {
  Fields list = stored_fields(*options);
  for (const HfKey& key : scaling_keys()) {
    const nlohmann::json value = rotation.value(key.theirs);
    const bool is_default = value.is_null() || (std::string_view(key.theirs).starts_with("beta") && value == 0);
    const std::string where = rotation.where + ": " + key.theirs;
    if (!is_default) set_field(list, key.ours, field_text(value, where), where);
  }
  RotaryScaling& scaling = options->attention.rotary_scaling;
  set_original_context(config, rotation, options);
  if (scaling.kind == RotaryScalingKind::kLlama3) {
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
      HS_CHECK(!rotation.value(key).is_null(), rotation.where, ": ", key, " is missing, which rope_type llama3 needs");
    }
  }
  const bool is_yarn = scaling.kind == RotaryScalingKind::kYarn;
  if (is_yarn && !scaling.factor) {
    scaling.factor = static_cast<double>(options->context) / static_cast<double>(*scaling.original_context);
  }
  HS_CHECK(scaling.factor, rotation.where, ": factor is missing");
  if (is_yarn && !scaling.attention_factor) {
    scaling.attention_factor =
        yarn_attention_factor(*scaling.factor, mscale_of(rotation, "mscale"), mscale_of(rotation, "mscale_all_dim"));
  }
}

}  // namespace

std::string read_rotation(const HfConfig& config, DecoderOptions* options) {
  const Rotation rotation = rotation_of(config);
  const nlohmann::json base = rotation.values.value("rope_theta", config.value("rope_theta"));
  const bool in_rotation = rotation.values.contains("rope_theta");
  const std::string where = in_rotation ? rotation.where + ": rope_theta" : config.config_key("rope_theta");
  Fields list = stored_fields(*options);
  if (!base.is_null()) set_field(list, "rotary-base", field_text(base, where), where);
  const std::string refusal = why_not_rotation(config, rotation);
  if (!refusal.empty()) return refusal;
  const nlohmann::json type =
      rotation.values.value("rope_type", rotation.values.value("type", nlohmann::json("default")));
  const auto known = scaling_types().find(type.is_string() ? type.get<std::string>() : "");
  if (known == scaling_types().end()) {
    return join_text(rotation.where, " (", brief_json(type),
                     ") changes how positions turn queries and keys in a way that headshare does not have; it has "
                     "linear, llama3 and yarn");
  }
  options->attention.rotary_scaling = {.kind = known->second};
  if (known->second != RotaryScalingKind::kNone) read_scaling(config, rotation, options);
  return "";
}

void write_rotation(const DecoderOptions& options, nlohmann::json* config) {
  const RotaryScaling& scaling = options.attention.rotary_scaling;
  nlohmann::json rotation = {{"rope_type", rope_type_name(scaling.kind)}};
  if (scaling.kind != RotaryScalingKind::kNone) rotation["factor"] = *scaling.factor;
  if (scaling.original_context) rotation["original_max_position_embeddings"] = *scaling.original_context;
  if (scaling.kind == RotaryScalingKind::kLlama3) {
    rotation["low_freq_factor"] = scaling.low_frequency_factor;
    rotation["high_freq_factor"] = scaling.high_frequency_factor;
  }
  if (scaling.kind == RotaryScalingKind::kYarn) {
    rotation["beta_fast"] = scaling.beta_fast;
    rotation["beta_slow"] = scaling.beta_slow;
    rotation["attention_factor"] = *scaling.attention_factor;
    rotation["truncate"] = scaling.truncate;
  }
  // transformers 4 reads rope_theta and rope_scaling; 5 reads rope_parameters, and rope_scaling first.
  if (scaling.kind != RotaryScalingKind::kNone) (*config)["rope_scaling"] = rotation;
  rotation["rope_theta"] = (*config)["rope_theta"] = options.attention.rotary_base;
  (*config)["rope_parameters"] = rotation;
}

}  // namespace headshare
