#include "headshare/text/simple/character_tokenizer.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {

constexpr int32_t kReplacementCharacter = 0xFFFD;

CharacterTokenizer::CharacterTokenizer(std::vector<int32_t> characters, Options options, const std::string& where)
    : characters_(std::move(characters)), options_(options) {
  HS_CHECK(!characters_.empty(), where, ": no characters: the training text is empty");
  for (size_t i = 0; i < characters_.size(); ++i) {
    const int32_t c = characters_[i];
    HS_CHECK(c >= 0 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF), where, ": ", c, " is not a Unicode character");
    HS_CHECK(i == 0 || characters_[i - 1] < c, where, ": the characters must ascend, but ", show_code_point(c), " (id ",
             i, ") follows ", show_code_point(characters_[i - 1]));
    ids_.emplace(c, static_cast<int32_t>(i));
  }
}

int64_t CharacterTokenizer::vocabulary_size() const {
  return static_cast<int64_t>(characters_.size()) + (options_.unknown_token ? 1 : 0);
}

int32_t CharacterTokenizer::id_of(int32_t code_point, size_t byte) const {
  const auto found = ids_.find(code_point);
  if (found != ids_.end()) return found->second;
  HS_CHECK(options_.unknown_token, "the character ", show_code_point(code_point), " at byte ", byte,
           " is not among the ", characters_.size(),
           " the tokenizer was trained on; train it on text that has it, or with --unknown-token, or use the "
           "tokenizer 'bytes' or 'bpe'");
  return static_cast<int32_t>(characters_.size());
}

std::vector<int32_t> CharacterTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  size_t position = 0;
  while (position < text.size()) {
    const size_t byte = position;
    const int32_t code_point = next_code_point(text, &position);
    if (code_point < 0) check_utf8(text, "tokenizer 'characters'");
    ids.push_back(id_of(code_point, byte));
  }
  return ids;
}

std::string CharacterTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    const auto index = static_cast<size_t>(id);
    append_utf8(index < characters_.size() ? characters_[index] : kReplacementCharacter, &text);
  }
  return text;
}

TokensWithSpans CharacterTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result = {encode(text), {}};
  for (size_t end = 0; end < text.size();) {
    const size_t begin = end;
    next_code_point(text, &end);
    result.spans.push_back({begin, end});
  }
  return result;
}

std::optional<int32_t> CharacterTokenizer::special(SpecialToken role) const {
  if (role != SpecialToken::kUnknown || !options_.unknown_token) return std::nullopt;
  return static_cast<int32_t>(characters_.size());
}

bool CharacterTokenizer::continues_word(int32_t) const { throw_words_unknown(*this); }

nlohmann::json CharacterTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  nlohmann::json& list = object["characters"] = nlohmann::json::array();
  for (const int32_t code_point : characters_) {
    std::string text;
    append_utf8(code_point, &text);
    list.push_back(std::move(text));
  }
  object["unknown-token"] = options_.unknown_token;
  return object;
}

std::unique_ptr<CharacterTokenizer> CharacterTokenizer::from_json(const nlohmann::json& object,
                                                                  const std::string& where) {
  refuse_unknown_keys(object, {"format", "version", "kind", "characters", "unknown-token"}, where);
  std::vector<int32_t> characters;
  for (const nlohmann::json& value : json_list(object, "characters", where)) {
    const std::string what = join_text(where, ": character ", characters.size());
    const std::string& text = json_string(value, what);
    size_t position = 0;
    const int32_t code_point = text.empty() ? -1 : next_code_point(text, &position);
    HS_CHECK(code_point >= 0 && position == text.size(), what, " must be one character, not ", brief_json(value));
    characters.push_back(code_point);
  }
  const bool unknown = json_bool(object, "unknown-token", where);
  return std::make_unique<CharacterTokenizer>(std::move(characters), Options{.unknown_token = unknown}, where);
}

}  // namespace headshare
