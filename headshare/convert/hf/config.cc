#include "headshare/convert/hf/config.h"

#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"

namespace headshare {
namespace {

constexpr uint64_t kMostConfigBytes = 16 << 20;

template <class Options>
Options resolve_or_name(const HfConfig& config, const Options& options) {
  try {
    return resolve(options);
  } catch (const Error& error) {
    throw Error(config.file().string() + ": " + error.what());
  }
}

}  // namespace

HfConfig::HfConfig(fs::path file) : file_(std::move(file)), config_(read_json_input(file_, kMostConfigBytes)) {
  HS_CHECK(config_.is_object(), file_.string(), ": must be a JSON object, not ", brief_json(config_));
}

std::string HfConfig::config_key(const std::string& key) const { return file_.string() + ": " + key; }

const nlohmann::json& HfConfig::value(const std::string& key) const {
  static const nlohmann::json kNull;
  const auto found = config_.find(key);
  return found == config_.end() ? kNull : *found;
}

std::optional<std::string> HfConfig::architecture() const {
  const nlohmann::json& list = value("architectures");
  if (list.is_null() || (list.is_array() && list.empty())) return std::nullopt;
  const std::string where = config_key("architectures");
  HS_CHECK(list.is_array(), where, " is ", brief_json(list), ", not a list of class names");
  return json_string(list.front(), where);
}

bool HfConfig::flag(const std::string& key, bool otherwise) const {
  return config_.contains(key) ? json_bool(config_.at(key), config_key(key)) : otherwise;
}

const nlohmann::json& either_value(const HfConfig& config, const std::string& theirs, const char* general_name) {
  const nlohmann::json& value = config.value(theirs);
  if (general_name == nullptr) return value;
  const nlohmann::json& general = config.value(general_name);
  HS_CHECK(value.is_null() || general.is_null() || value == general, config.config_key(theirs), " is ",
           brief_json(value), " and ", general_name, " is ", brief_json(general), "; they must agree: remove one");
  return value.is_null() ? general : value;
}

void read_keys(const HfConfig& config, const std::vector<HfKey>& keys, Fields options) {
  for (const HfKey& key : keys) {
    const nlohmann::json& value = either_value(config, key.theirs, key.general);
    const std::string where = config.config_key(key.theirs);
    if (!value.is_null()) set_field(options, key.ours, field_text(value, where), where);
  }
}

DecoderOptions resolve_read(const HfConfig& config, const DecoderOptions& options) {
  return resolve_or_name(config, options);
}

EncoderOptions resolve_read(const HfConfig& config, const EncoderOptions& options) {
  return resolve_or_name(config, options);
}

EncoderDecoderOptions resolve_read(const HfConfig& config, const EncoderDecoderOptions& options) {
  return resolve_or_name(config, options);
}

VisionOptions resolve_read(const HfConfig& config, const VisionOptions& options) {
  return resolve_or_name(config, options);
}

ActivationKind read_activation(const HfConfig& config, const std::string& key, ActivationKind otherwise) {
  static const std::map<std::string, ActivationKind> kKnown = {{"gelu_new", ActivationKind::kGeluTanh},
                                                               {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
                                                               {"gelu_python_tanh", ActivationKind::kGeluTanh},
                                                               {"gelu_fast", ActivationKind::kGeluTanh},
                                                               {"gelu", ActivationKind::kGeluErf},
                                                               {"gelu_python", ActivationKind::kGeluErf},
                                                               {"relu", ActivationKind::kRelu},
                                                               {"silu", ActivationKind::kSilu},
                                                               {"swish", ActivationKind::kSilu}};
  const nlohmann::json& value = config.value(key);
  if (value.is_null()) return otherwise;
  const std::string where = config.config_key(key);
  const auto found = kKnown.find(json_string(value, where));
  HS_CHECK(
      found != kKnown.end(), where, " is ", brief_json(value),
      ", which headshare does not have; it reads gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu and swish");
  return found->second;
}

void refuse_other_classes(const HfConfig& config, const std::vector<std::string>& known) {
  const std::optional<std::string> name = config.architecture();
  if (!name || std::find(known.begin(), known.end(), *name) != known.end()) return;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  throw Error(join_text(config.config_key("architectures"), " names ", brief_text(*name),
                        ", which headshare cannot reproduce", did_you_mean(*name, known), "; it reads ", list,
                        ". To convert the model without its head, save that with transformers: "
                        "AutoModel.from_pretrained(DIR).save_pretrained(NEW_DIR). A decoder whose embeddings are not "
                        "tied has no output embedding then, and cannot be converted"));
}

std::string why_not_causal(const HfConfig& config) {
  if (config.flag("is_causal", true)) return "";
  return config.config_key("is_causal") + " is false; headshare's decoders attend to what came before";
}

void refuse_what_we_lack(const HfConfig& config) {
  HS_CHECK(!config.flag("add_cross_attention", false), config.config_key("add_cross_attention"),
           " is true: a model of one text has nothing else to attend to; convert a model without it");
  const nlohmann::json& quantized = config.value("quantization_config");
  HS_CHECK(quantized.is_null(), config.config_key("quantization_config"),
           " is set: headshare reads float weights; save the model without quantisation");
  const nlohmann::json& pruned = config.value("pruned_heads");
  HS_CHECK(pruned.is_null() || pruned.empty(), config.config_key("pruned_heads"),
           " is not empty: every layer must have all of its heads; convert the model before pruning");
}

}  // namespace headshare
