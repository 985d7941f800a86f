#include "headshare/text/hf/hf_class_options.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

bool is_class(const std::string& name, std::initializer_list<std::string> classes) {
  return std::any_of(classes.begin(), classes.end(),
                     [&](const std::string& one) { return name == one || name == one + "Fast"; });
}

// Returns a part of a tokenizer.json where it is of this type, else null.
nlohmann::json* part_of(nlohmann::json* tokenizer, const char* key, const char* type) {
  if (!tokenizer->is_object() || !tokenizer->contains(key)) return nullptr;
  nlohmann::json& part = tokenizer->at(key);
  return part.is_object() && part.value("type", nlohmann::json()) == type ? &part : nullptr;
}

}  // namespace

void apply_class_options(const HfTokenizerConfig& config, nlohmann::json* tokenizer) {
  const std::string name = config.tokenizer_class();
  if (is_class(name, {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"})) {
    if (nlohmann::json* const part = part_of(tokenizer, "normalizer", "BertNormalizer")) {
      const BertNormalization read = normalization_from_hf_config(config.content(), config.file().string());
      (*part)["lowercase"] = read.lowercase;
      (*part)["strip_accents"] = read.strip_accents;
      (*part)["handle_chinese_chars"] = read.space_chinese;
    }
  } else if (is_class(name, {"GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer"})) {
    if (nlohmann::json* const part = part_of(tokenizer, "pre_tokenizer", "ByteLevel")) {
      (*part)["add_prefix_space"] = config.adds_prefix_space();
    }
  }
}

}  // namespace headshare
