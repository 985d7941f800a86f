#include "headshare/convert/hf/model_types.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/families/albert.h"
#include "headshare/convert/hf/families/bart.h"
#include "headshare/convert/hf/families/bert.h"
#include "headshare/convert/hf/families/distilbert.h"
#include "headshare/convert/hf/families/gpt2.h"
#include "headshare/convert/hf/families/gpt_bigcode.h"
#include "headshare/convert/hf/families/marian.h"
#include "headshare/convert/hf/families/modernbert.h"
#include "headshare/convert/hf/families/roberta.h"
#include "headshare/convert/hf/families/timm_vit.h"
#include "headshare/convert/hf/families/vit.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {

const std::vector<HfModelType>& hf_model_types() {
  static const std::vector<HfModelType> types = {
      gpt2_type(),       gpt_bigcode_type(), bert_type(),   roberta_type(), xlm_roberta_type(),
      distilbert_type(), albert_type(),      marian_type(), bart_type(),    mbart_type(),
      llama_type(),      mistral_type(),     qwen2_type(),  qwen3_type(),   gemma_type(),
      modernbert_type(), vit_type(),         deit_type(),   timm_type()};
  return types;
}

nlohmann::json model_type_of(const HfConfig& config) {
  const nlohmann::json& type = config.value("model_type");
  return type.is_null() && config.has("architecture") ? nlohmann::json(kTimmType) : type;
}

const HfModelType& type_to_open(const HfDirectory& directory) {
  const nlohmann::json value = model_type_of(directory);
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  std::vector<std::string> known;
  for (const HfModelType& type : hf_model_types()) {
    if (type.open == nullptr) continue;
    if (type.name == name) return type;
    known.push_back(type.name);
  }
  std::sort(known.begin(), known.end());
  const std::string reason = why_type_is_missing(name);
  throw Error(join_text(directory.config_key("model_type"), " is ", brief_json(value),
                        reason.empty() ? did_you_mean(name, known) : reason, "; headshare converts models of type ",
                        list_text(known)));
}

std::string why_type_is_missing(const std::string& name) {
  constexpr const char* kExperts = ", whose layers choose among experts, which headshare does not have";
  static const std::map<std::string, std::string> reasons = {
      {"gemma2",
       ", which norms both sides of each part, caps scores and logits softly and gives every other layer a window of "
       "tokens: headshare has none of these"},
      {"gemma3", ", which reads images, too, and norms both sides of each part: headshare does neither"},
      {"gemma3_text",
       ", which norms both sides of each part and gives most layers a window of tokens and rotations of their own: "
       "headshare has none of these"},
      {"mixtral", kExperts},
      {"qwen2_moe", kExperts},
      {"qwen3_moe", kExperts}};
  const auto found = reasons.find(name);
  return found == reasons.end() ? "" : found->second;
}

namespace {

// Tells whether the row is one that a model of this kind may be written as, and the one that was asked for.
bool may_hold(const HfModelType& type, const ModelOptions& options, const std::string& name) {
  const bool chosen = name.empty() ? !type.only_by_name : type.name == name;
  return chosen && type.objections != nullptr && type.kind == options.kind().name();
}

}  // namespace

std::vector<std::string> written_types() {
  std::vector<std::string> names;
  for (const HfModelType& type : hf_model_types()) {
    if (type.objections != nullptr) names.push_back(type.name);
  }
  return names;
}

const HfModelType* type_to_write(const ModelOptions& options, const std::string& name) {
  const std::vector<HfModelType>& types = hf_model_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const HfModelType& type) {
    return may_hold(type, options, name) && type.objections(options).empty();
  });
  return found == types.end() ? nullptr : &*found;
}

std::string why_no_type_holds(const ModelOptions& options, const std::string& name) {
  size_t fewest = SIZE_MAX;
  std::string reasons;
  for (const HfModelType& type : hf_model_types()) {
    if (!may_hold(type, options, name)) continue;
    const std::vector<std::string> objections = type.objections(options);
    if (objections.empty()) return "";
    if (objections.size() > fewest) continue;
    reasons = objections.size() < fewest ? objections.front()
                                         : reasons + "; and as " + type.models.front() + ": " + objections.front();
    fewest = objections.size();
  }
  if (!reasons.empty()) return reasons;
  if (!name.empty()) {
    return join_text("the model is ", with_article(options.kind()), ", and models of type ", name, " are none");
  }
  return join_text("the model is an ", options.kind().name(), ", and Hugging Face's directories are written for ",
                   written_types_text(), " alone; only headshare reads such a model");
}

std::string written_types_text() {
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<std::string>> written;
  for (const HfModelType& type : hf_model_types()) {
    if (type.objections == nullptr) continue;
    if (written[type.kind].empty()) kinds.push_back(type.kind);
    written[type.kind].push_back(type.models.front());
  }
  std::vector<std::string> parts;
  for (const std::string& kind : kinds) parts.push_back(kind + "s as " + list_text(written.at(kind), "or"));
  return list_text(parts);
}

}  // namespace headshare
