#include "headshare/convert/hf/target_language.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/generation_config.h"
#include "headshare/text/hf/hf_tokenizer_config.h"

namespace headshare {
namespace {

constexpr uint64_t kMostTokenizerBytes = 64 << 20;
constexpr const char* kTokenizer = "tokenizer.json";

// The id of a token in a tokenizer.json: among those added, or in the vocabulary, which is a list or an object.
std::optional<int64_t> id_of(const std::string& token, const fs::path& file) {
  if (!path_exists(file)) return std::nullopt;
  const nlohmann::json object = read_json_input(file, kMostTokenizerBytes);
  if (!object.is_object()) return std::nullopt;
  for (const nlohmann::json& one : object.value("added_tokens", nlohmann::json::array())) {
    if (one.is_object() && one.value("content", nlohmann::json()) == token) return json_count(one, "id");
  }
  const nlohmann::json model = object.value("model", nlohmann::json());
  const nlohmann::json vocabulary = model.is_object() ? model.value("vocab", nlohmann::json()) : nlohmann::json();
  if (vocabulary.is_object()) return json_count(vocabulary, token.c_str());
  for (size_t i = 0; vocabulary.is_array() && i < vocabulary.size(); ++i) {
    if (vocabulary[i].is_array() && !vocabulary[i].empty() && vocabulary[i].front() == token) return i;
  }
  return std::nullopt;
}

// Classes that take any tokenizer.json do not tell.
bool has_languages(const HfTokenizerConfig& config) {
  const std::string name = config.tokenizer_class();
  return name.empty() || name.starts_with("MBart") || name.starts_with("PreTrained") || name == "TokenizersBackend";
}

}  // namespace

void take_target_language(const HfDirectory& directory, ForeignModel* foreign) {
  TargetMarks& marks = foreign->options.as<EncoderDecoderOptions>().marks;
  const HfTokenizerConfig config(directory.path());
  if (!has_languages(config)) return;
  const HfGeneration generation(directory);
  const bool starts = generation.id("decoder_start_token_id").has_value();
  if (marks.forced_first || (starts && marks.start != marks.end)) return;
  const std::string ids =
      join_text(generation.key("forced_bos_token_id"), " (mBART-50) or decoder_start_token_id (mBART)");
  const std::string language = config.target_language();
  HS_CHECK(
      !language.empty(), directory.path().string(),
      " does not say in which language the model writes: mBART begins a target with the token of its language. Put "
      "the token's id into ",
      ids, ", or the language into ", HfTokenizerConfig::kFile, " (\"tgt_lang\": \"ro_RO\")");
  const std::optional<int64_t> id = id_of(language, directory.path() / kTokenizer);
  const int64_t vocabulary = foreign->options.as<EncoderDecoderOptions>().vocabulary;
  const std::string where = join_text(config.file().string(), ": tgt_lang is ", brief_text(language), ", and ");
  HS_CHECK(path_exists(directory.path() / kTokenizer), where, "there is no ", kTokenizer,
           " that has its id; make one with transformers, "
           "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR), or put the token's id into ",
           ids);
  HS_CHECK(id && *id < vocabulary, where, kTokenizer, " has no such token among the model's ", vocabulary,
           "; put the token's id into ", ids);
  (starts ? marks.forced_first.emplace() : marks.start) = *id;
  foreign->notes.push_back(
      join_text("targets are in ", language, " (token ", *id, "), the tgt_lang of ", HfTokenizerConfig::kFile));
}

}  // namespace headshare
