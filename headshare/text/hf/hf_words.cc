// Writes words of a list as Hugging Face reads them: cut as in hash/word_or_symbol.h, and looked up whole.
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"

namespace headshare {
namespace {

using nlohmann::json;

// Python's \w is letters, numbers and '_', and its \s has U+001C .. U+001F: other programs' classes differ.
constexpr const char* kWordOrSymbol = R"([\p{L}\p{N}_]+|[^\p{L}\p{N}_\s\x{1c}-\x{1f}]+)";

// Hugging Face lower-cases each character by itself; a sigma at the end of a word has a form of its own (Unicode's
// Final_Sigma).
constexpr const char* kFinalSigmaPattern = R"(\p{Cased}\p{Case_Ignorable}*\K\x{03a3}(?!\p{Case_Ignorable}*\p{Cased}))";

json normalizer() {
  const json sigma = {{"type", "Replace"}, {"pattern", {{"Regex", kFinalSigmaPattern}}}, {"content", "\u03c2"}};
  return {{"type", "Sequence"}, {"normalizers", {sigma, {{"type", "Lowercase"}}}}};
}

// Returns <s> A </s> and <s> A </s> </s> B </s>, of which B and what follows is segment 1.
json post_processor() {
  const auto special = [](const char* text, int segment) {
    return json{{"SpecialToken", {{"id", text}, {"type_id", segment}}}};
  };
  const auto sequence = [](const char* name, int segment) {
    return json{{"Sequence", {{"id", name}, {"type_id", segment}}}};
  };
  const auto token = [](const char* text, int id) { return json{{"id", text}, {"ids", {id}}, {"tokens", {text}}}; };
  const json first = {special("<s>", 0), sequence("A", 0), special("</s>", 0)};
  json both = first;
  for (const json& part : {special("</s>", 0), sequence("B", 1), special("</s>", 1)}) both.push_back(part);
  return {{"type", "TemplateProcessing"},
          {"single", first},
          {"pair", both},
          {"special_tokens", {{"<s>", token("<s>", 0)}, {"</s>", token("</s>", 2)}}}};
}

}  // namespace

json hf_json_from_words(const std::vector<std::string>& words) {
  json vocabulary = json::object();
  json added = json::array();
  int32_t id = 0;
  for (const char* special : HashTokenizer::kSpecialTexts) {
    added.push_back(added_token_json({.id = id, .text = special, .special = true}));
    vocabulary[special] = id++;
  }
  for (const std::string& word : words) vocabulary[word] = id++;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", normalizer()},
          {"pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", kWordOrSymbol}}}, {"behavior", "Removed"}, {"invert", true}}},
          {"post_processor", post_processor()},
          {"decoder", nullptr},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}}}};
}

}  // namespace headshare
