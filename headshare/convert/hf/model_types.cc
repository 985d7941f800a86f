#include "headshare/convert/hf/model_types.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"
#include "headshare/convert/hf/albert.h"
#include "headshare/convert/hf/bart.h"
#include "headshare/convert/hf/bert.h"
#include "headshare/convert/hf/distilbert.h"
#include "headshare/convert/hf/gpt2.h"
#include "headshare/convert/hf/llama.h"
#include "headshare/convert/hf/marian.h"
#include "headshare/convert/hf/roberta.h"

namespace headshare {

const std::vector<HfModelType>& hf_model_types() {
  static const std::vector<HfModelType> types = {gpt2_type(),       bert_type(),   roberta_type(), xlm_roberta_type(),
                                                 distilbert_type(), albert_type(), marian_type(),  bart_type(),
                                                 mbart_type(),      llama_type(),  mistral_type(), qwen2_type()};
  return types;
}

const HfModelType& type_to_open(const HfDirectory& directory) {
  const nlohmann::json& value = directory.value("model_type");
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  std::vector<std::string> known;
  for (const HfModelType& type : hf_model_types()) {
    if (type.open == nullptr) continue;
    if (type.name == name) return type;
    known.push_back(type.name);
  }
  std::sort(known.begin(), known.end());
  throw Error(join_text(directory.config_key("model_type"), " is ", brief_json(value), did_you_mean(name, known),
                        "; headshare converts models of type ", list_text(known)));
}

const HfModelType* type_to_write(const ModelOptions& options) {
  const std::vector<HfModelType>& types = hf_model_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const HfModelType& type) {
    return type.objections != nullptr && type.kind == options.kind().name() && type.objections(options).empty();
  });
  return found == types.end() ? nullptr : &*found;
}

std::string why_no_type_holds(const ModelOptions& options) {
  size_t fewest = SIZE_MAX;
  std::string reasons;
  for (const HfModelType& type : hf_model_types()) {
    if (type.objections == nullptr || type.kind != options.kind().name()) continue;
    const std::vector<std::string> objections = type.objections(options);
    if (objections.empty()) return "";
    if (objections.size() > fewest) continue;
    reasons = objections.size() < fewest ? objections.front()
                                         : reasons + "; and as " + type.models.front() + ": " + objections.front();
    fewest = objections.size();
  }
  if (!reasons.empty()) return reasons;
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
