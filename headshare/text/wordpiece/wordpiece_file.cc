#include "headshare/text/wordpiece/wordpiece_file.h"

#include <algorithm>
#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/added/added_file.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

using nlohmann::json;

// Tells whether lower-cased text could never give one of the ordinary tokens. "[unused0]" and its like, as published
// vocabularies have them, are not given by any text.
bool has_capital(const std::vector<std::string>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) {
    return !token.starts_with('[') &&
           std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  });
}

std::vector<std::string> vocabulary_lines(std::string_view text, const std::string& name) {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, size_t> lines;
  while (!text.empty()) {
    const size_t number = tokens.size() + 1;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    HS_CHECK(!line.empty(), name, ":", number,
             ": an empty line; every line of a vocabulary is a token, and the ids after ", number - 1, " depend on it");
    check_utf8(line, join_text(name, ":", number));
    const auto [first, fresh] = lines.emplace(line, number);
    HS_CHECK(fresh, name, ":", number, ": the token ", brief_json(first->first), " stands in line ", first->second,
             " too");
    tokens.emplace_back(line);
  }
  return tokens;
}

}  // namespace

bool has_bert_role(std::string_view token) {
  return std::any_of(std::begin(kBertSpecialTokens), std::end(kBertSpecialTokens),
                     [token](const BertSpecialToken& special) { return special.text == token; });
}

BertNormalization bert_normalization(bool cased) { return {.strip_accents = !cased, .lowercase = !cased}; }

WordPieceDefinition wordpiece_from_vocabulary(std::string_view text,
                                              const std::optional<BertNormalization>& normalization,
                                              const std::string& name) {
  WordPieceDefinition definition;
  definition.tokens = vocabulary_lines(text, name);
  bool has_unknown = false;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    if (!has_bert_role(definition.tokens[id])) continue;
    definition.special.push_back(static_cast<int32_t>(id));
    if (definition.tokens[id] != "[UNK]") continue;
    definition.unknown = static_cast<int32_t>(id);
    has_unknown = true;
  }
  HS_CHECK(has_unknown, name, ": none of the ", definition.tokens.size(),
           " lines is [UNK], which words that the vocabulary cannot spell become; is this a WordPiece vocab.txt?");
  definition.normalization = normalization.value_or(bert_normalization(has_capital(definition.tokens)));
  return definition;
}

BertNormalization normalization_from_hf_config(const json& object, const std::string& where) {
  HS_CHECK(object.is_object(), where, ": must be a JSON object, not ", brief_json(object));
  check_hf_tokenizer_class(object, where);
  const auto flag = [&](const char* key, bool otherwise) {
    const auto found = object.find(key);
    return found == object.end() ? otherwise : json_bool(*found, where + ": " + key);
  };
  BertNormalization normalization = bert_normalization(!flag("do_lower_case", true));
  normalization.space_chinese = flag("tokenize_chinese_chars", true);
  const auto accents = object.find("strip_accents");  // the only one that may be null
  if (accents != object.end() && !accents->is_null()) {
    normalization.strip_accents = json_bool(*accents, where + ": strip_accents");
  }
  return normalization;
}

void check_hf_tokenizer_class(const json& object, const std::string& where) {
  // transformers maps all of the first four to BertTokenizer's code; the last two take whatever tokenizer.json says.
  static constexpr const char* kBert[] = {"BertTokenizer",       "DistilBertTokenizer", "ElectraTokenizer",
                                          "MobileBertTokenizer", "PreTrainedTokenizer", "TokenizersBackend"};
  const auto found = object.find("tokenizer_class");
  if (found == object.end() || found->is_null()) return;
  const std::string& name = json_string(*found, where + ": tokenizer_class");
  const bool known = std::any_of(std::begin(kBert), std::end(kBert),
                                 [&](const std::string& bert) { return name == bert || name == bert + "Fast"; });
  HS_CHECK(
      known, where, ": tokenizer_class is ", brief_json(*found),
      ", which cuts text in another way than BERT's WordPiece; headshare reads a vocab.txt of BertTokenizer. If the "
      "vocabulary is BERT's after all, remove tokenizer_class there");
}

void write_wordpiece(const WordPieceDefinition& definition, json* object) {
  (*object)["tokens"] = definition.tokens;
  (*object)["special"] = definition.special;
  (*object)["unknown"] = definition.unknown;
  (*object)["longest-word"] = definition.longest_word;
  (*object)["clean-text"] = definition.normalization.clean_text;
  (*object)["space-chinese"] = definition.normalization.space_chinese;
  (*object)["strip-accents"] = definition.normalization.strip_accents;
  (*object)["lowercase"] = definition.normalization.lowercase;
  write_added(definition.added, definition.tokens, {}, object);
}

WordPieceDefinition read_wordpiece(const json& object, const std::string& where) {
  std::vector<std::string> known = {"format",        "version",       "kind",         "tokens",
                                    "special",       "unknown",       "longest-word", "clean-text",
                                    "space-chinese", "strip-accents", "lowercase"};
  known.insert(known.end(), std::begin(kAddedKeys), std::end(kAddedKeys));
  refuse_unknown_keys(object, known, where);
  WordPieceDefinition definition;
  for (const json& value : json_list(object, "tokens", where)) {
    definition.tokens.push_back(json_string(value, join_text(where, ": token ", definition.tokens.size())));
  }
  for (const json& value : json_list(object, "special", where)) {
    definition.special.push_back(json_id(value, where + ": a special token's id"));
  }
  definition.unknown = json_id(object, "unknown", where);
  definition.longest_word = json_id(object, "longest-word", where);
  definition.normalization = {.clean_text = json_bool(object, "clean-text", where),
                              .space_chinese = json_bool(object, "space-chinese", where),
                              .strip_accents = json_bool(object, "strip-accents", where),
                              .lowercase = json_bool(object, "lowercase", where)};
  definition.added = read_added(object, definition.tokens, where);
  return definition;
}

}  // namespace headshare
