#include "headshare/text/simple/word_tokenizer.h"

#include <utf8proc.h>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {

bool is_word_space(int32_t code_point) {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  if (code_point == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit) {
  size_t start = 0;
  size_t position = 0;
  while (position < text.size()) {
    const size_t byte = position;
    const int32_t code_point = next_code_point(text, &position);
    if (code_point < 0) check_utf8(text, "tokenizer 'words'");
    if (!is_word_space(code_point)) continue;
    if (byte > start) visit(text.substr(start, byte - start));
    if (code_point == '\n') visit(text.substr(byte, 1));
    start = position;
  }
  if (start < text.size()) visit(text.substr(start));
}

WordTokenizer::WordTokenizer(std::vector<std::string> words, const std::string& where) : words_(std::move(words)) {
  HS_CHECK(words_.size() >= 2 && words_[kUnknown] == kUnknownText && words_[kEndOfLine] == kEndOfLineText, where,
           ": a word vocabulary begins with <unk> and <eos>");
  for (size_t id = 0; id < words_.size(); ++id) {
    const std::string& word = words_[id];
    size_t pieces = 0;
    for_each_word(word, [&](std::string_view piece) { pieces += piece.size() == word.size() ? 1 : 2; });
    HS_CHECK(pieces == 1, where, ": word ", id, " is empty or has white space: ", brief_json(word));
    const bool fresh = ids_.emplace(word, static_cast<int32_t>(id)).second;
    HS_CHECK(fresh, where, ": the word ", brief_json(word), " has two ids, ", ids_[word], " and ", id);
  }
  ids_.erase(kEndOfLineText);
}

int32_t WordTokenizer::id_of(std::string_view word) const {
  if (word == "\n") return kEndOfLine;
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnknown : found->second;
}

std::vector<int32_t> WordTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  for_each_word(text, [&](std::string_view word) { ids.push_back(id_of(word)); });
  return ids;
}

TokensWithSpans WordTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result;
  for_each_word(text, [&](std::string_view word) {
    const auto begin = static_cast<size_t>(word.data() - text.data());
    result.ids.push_back(id_of(word));
    result.spans.push_back({begin, begin + word.size()});
  });
  return result;
}

std::optional<int32_t> WordTokenizer::special(SpecialToken role) const {
  return role == SpecialToken::kUnknown ? std::optional(kUnknown) : std::nullopt;
}

bool WordTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return false;
}

std::string WordTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    if (id == kEndOfLine) {
      text += '\n';
      continue;
    }
    if (!text.empty() && text.back() != '\n') text += ' ';
    text += words_[static_cast<size_t>(id)];
  }
  return text;
}

nlohmann::json WordTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  object["words"] = words_;
  return object;
}

std::unique_ptr<WordTokenizer> WordTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  refuse_unknown_keys(object, {"format", "version", "kind", "words"}, where);
  std::vector<std::string> words;
  for (const nlohmann::json& value : json_list(object, "words", where)) {
    words.push_back(json_string(value, join_text(where, ": word ", words.size())));
  }
  return std::make_unique<WordTokenizer>(std::move(words), where);
}

}  // namespace headshare
