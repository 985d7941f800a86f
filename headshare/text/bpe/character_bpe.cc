#include "headshare/text/bpe/character_bpe.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/bpe/character_bpe_file.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/interface/word_cache.h"
#include "headshare/text/unicode/metaspace.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr size_t kLongestCharacterToken = 1024;  // bytes

bool is_among(const std::vector<int32_t>& ids, int32_t id) { return std::binary_search(ids.begin(), ids.end(), id); }

void check_character_tokens(const std::vector<std::string>& tokens, const std::string& where) {
  HS_CHECK(!tokens.empty(), where, ": an empty vocabulary");
  std::unordered_map<std::string_view, size_t> all;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string name = join_text(where, ": the token with id ", id);
    HS_CHECK(!tokens[id].empty() && tokens[id].size() <= kLongestCharacterToken, name, " has ", tokens[id].size(),
             " bytes; wanted are 1 to ", kLongestCharacterToken);
    check_utf8(tokens[id], name);
    const auto [at, fresh] = all.emplace(tokens[id], id);
    HS_CHECK(fresh, where, ": the token ", brief_json(tokens[id]), " has two ids, ", at->second, " and ", id);
  }
}

void check_character_specials(const CharacterBpeDefinition& d, const std::string& where) {
  for (size_t i = 0; i < d.special.size(); ++i) {
    const int32_t id = d.special[i];
    HS_CHECK(id >= 0 && static_cast<size_t>(id) < d.tokens.size(), where, ": the special token's id ", id,
             " is not among the ", d.tokens.size(), " tokens");
    HS_CHECK(i == 0 || d.special[i - 1] < id, where, ": the special tokens' ids must ascend, but ", id, " follows ",
             i == 0 ? 0 : d.special[i - 1]);
  }
  for (const std::optional<int32_t>& role : {d.unknown, d.begin_of_text, d.end_of_text, d.padding}) {
    HS_CHECK(!role || is_among(d.special, *role), where, ": the token ", role.value_or(0),
             " has a role, and is not among the ", d.special.size(), " special tokens");
  }
}

std::string byte_name(int byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

std::map<SpecialToken, int32_t> roles_in(const CharacterBpeDefinition& d) {
  std::map<SpecialToken, int32_t> roles;
  const auto add = [&roles](SpecialToken role, const std::optional<int32_t>& id) {
    if (id) roles.emplace(role, *id);
  };
  add(SpecialToken::kUnknown, d.unknown);
  add(SpecialToken::kBeginOfText, d.begin_of_text);
  add(SpecialToken::kEndOfText, d.end_of_text);
  add(SpecialToken::kPadding, d.padding);
  return roles;
}

bool begins_with_space(std::string_view part) { return part.starts_with(' ') || part.starts_with(kMetaspace); }

std::string with_space_signs(std::string_view part, bool with_space) {
  std::string text(with_space ? kMetaspace : "");
  text.reserve(text.size() + part.size() + part.size() / 2);
  for (const char c : part) {
    if (c == ' ') {
      text += kMetaspace;
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

// This is a part of a text with U+2581 for its spaces, and where its bytes come from.
class CharacterBpeTokenizer::SpacedText {
 public:
  SpacedText(std::string_view part, size_t offset, bool with_space)
      : part_(part),
        offset_(offset),
        text_(with_space_signs(part, with_space)),
        at_(with_space ? kMetaspace.size() : 0) {}

  std::string_view text() const { return text_; }

  // Returns the place in the whole text of the character that begins at byte `at`, or that ends there. Calls ascend.
  size_t original(size_t at) {
    while (at_ < at) {
      at_ += part_[passed_] == ' ' ? kMetaspace.size() : 1;
      ++passed_;
    }
    return offset_ + passed_;
  }

 private:
  std::string_view part_;
  size_t offset_;
  std::string text_;
  size_t at_;  // in text_, where `passed_` bytes of the part are passed
  size_t passed_ = 0;
};

struct CharacterBpeTokenizer::Worker {
  WordCache cache;
  TokenMerger::Scratch scratch;
};

CharacterBpeTokenizer::CharacterBpeTokenizer(CharacterBpeDefinition definition, const std::string& where)
    : definition_(std::move(definition)), roles_(roles_in(definition_)), merger_(definition_.merges, where) {
  const CharacterBpeDefinition& d = definition_;
  check_character_tokens(d.tokens, where);
  check_character_specials(d, where);
  find_characters(where);
  check_merges(where);
  std::vector<AddedToken> roles;
  for (const auto& [role, id] : roles_) {
    roles.push_back({.id = id, .text = d.tokens[static_cast<size_t>(id)], .special = true});
  }
  const auto as_normal = [&d](std::string_view text) {
    return d.replaces_first ? with_space_signs(text, d.space_before == SpaceBefore::kEvenSpace) : std::string(text);
  };
  added_ = AddedTokens(std::move(definition_.added), roles, d.tokens.size(), as_normal, where);
  definition_.added = added_.listed();
  for (const AddedToken& one : definition_.added) {
    if (one.normalized && as_normal(one.text) != one.text) normal_texts_.emplace(one.id, as_normal(one.text));
  }
}

CharacterBpeTokenizer::~CharacterBpeTokenizer() = default;

void CharacterBpeTokenizer::find_characters(const std::string& where) {
  std::unordered_map<std::string, int> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace(byte_name(byte), byte);
  byte_of_.assign(definition_.tokens.size(), -1);
  of_byte_.fill(-1);
  for (size_t id = 0; id < definition_.tokens.size(); ++id) {
    const std::string& token = definition_.tokens[id];
    if (is_among(definition_.special, static_cast<int32_t>(id))) continue;
    if (const auto byte = bytes.find(token); byte != bytes.end()) {
      byte_of_[id] = static_cast<int16_t>(byte->second);
      of_byte_[static_cast<size_t>(byte->second)] = static_cast<int32_t>(id);
      continue;
    }
    size_t end = 0;
    const auto point = static_cast<size_t>(next_code_point(token, &end));
    if (end == token.size()) {
      if (of_character_.size() <= point) of_character_.resize(point + 1, -1);
      of_character_[point] = static_cast<int32_t>(id);
    }
    for (size_t at = token.find(kMetaspace, 1); at != std::string::npos; at = token.find(kMetaspace, at + 1)) {
      joins_[static_cast<unsigned char>(token[at - 1])] = true;
    }
  }
  const auto missing = std::find(of_byte_.begin(), of_byte_.end(), -1);
  HS_CHECK(missing == of_byte_.end(), where, ": no token ", byte_name(static_cast<int>(missing - of_byte_.begin())),
           "; headshare reads BPE over characters with byte_fallback and a token for each of the 256 bytes");
}

void CharacterBpeTokenizer::check_merges(const std::string& where) const {
  for (size_t rank = 0; rank < definition_.merges.size(); ++rank) {
    const auto& [left, right, result] = definition_.merges[rank];
    for (const int32_t id : {left, right, result}) {
      HS_CHECK(id >= 0 && id < vocabulary_size(), where, ": merge ", rank, " names the id ", id,
               ", which is not among the ", vocabulary_size(), " tokens");
      HS_CHECK(!is_among(definition_.special, id) && byte_of_[static_cast<size_t>(id)] < 0, where, ": merge ", rank,
               " names ", brief_json(spelling(id)), ", which is a special token or a byte's");
    }
    HS_CHECK(spelling(left) + spelling(right) == spelling(result), where, ": merge ", rank, " of ",
             brief_json(spelling(left)), " and ", brief_json(spelling(right)), " makes ", brief_json(spelling(result)));
  }
}

void CharacterBpeTokenizer::encode_piece(std::string_view piece, Worker* worker, std::vector<int32_t>* ids) const {
  const std::span<const int32_t> known = worker->cache.find(piece);
  if (!known.empty()) {
    ids->insert(ids->end(), known.begin(), known.end());
    return;
  }
  std::vector<int32_t>& tokens = worker->scratch.tokens;
  tokens.clear();
  for (size_t at = 0; at < piece.size();) {
    const size_t begin = at;
    const int32_t point = next_code_point(piece, &at);
    const bool has_token = point >= 0 && static_cast<size_t>(point) < of_character_.size();
    const int32_t token = has_token ? of_character_[static_cast<size_t>(point)] : -1;
    if (token >= 0) {
      tokens.push_back(token);
      continue;
    }
    if (point < 0) ++at;
    for (size_t i = begin; i < at; ++i) tokens.push_back(of_byte_[static_cast<unsigned char>(piece[i])]);
  }
  const size_t before = ids->size();
  merger_.merge(&worker->scratch, ids);
  worker->cache.insert(piece, std::span(*ids).subspan(before));
}

// A merge crosses from byte b to a following U+2581 only if some token contains b followed by U+2581. Elsewhere the
// text is cut before U+2581.
size_t CharacterBpeTokenizer::next_piece(std::string_view text) const {
  for (size_t at = text.find(kMetaspace, 1); at != std::string_view::npos; at = text.find(kMetaspace, at + 1)) {
    if (!joins_[static_cast<unsigned char>(text[at - 1])]) return at;
  }
  return text.size();
}

void CharacterBpeTokenizer::encode_spaced(std::string_view text, std::vector<int32_t>* ids) const {
  workers_.run([] { return std::make_unique<Worker>(); },
               [&](Worker& worker) {
                 while (!text.empty()) {
                   const size_t bytes = next_piece(text);
                   encode_piece(text.substr(0, bytes), &worker, ids);
                   text.remove_prefix(bytes);
                 }
               });
}

bool CharacterBpeTokenizer::puts_space(std::string_view part, bool first) const {
  switch (definition_.space_before) {
    case SpaceBefore::kNever:
      return false;
    case SpaceBefore::kFirst:
      return first && !begins_with_space(part);
    case SpaceBefore::kEachPart:
      return !begins_with_space(part);
    case SpaceBefore::kEvenSpace:
      return true;
  }
  return false;
}

void CharacterBpeTokenizer::for_each_part(std::string_view text, const AddedSearches& searches,
                                          const VisitToken& visit_token, const VisitText& visit_text) const {
  const auto spaced = [&](TextSpan span) {
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    return SpacedText(part, span.begin, puts_space(part, span.begin == 0));
  };
  if (!definition_.replaces_first) {
    searches.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
      if (token != nullptr) return visit_token(token->id, span);
      SpacedText part = spaced(span);
      visit_text(&part, {0, part.text().size()});
    });
    return;
  }
  searches.plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) return visit_token(token->id, span);
    SpacedText part = spaced(span);
    if (searches.normalized.empty()) return visit_text(&part, {0, part.text().size()});
    searches.normalized.for_each_part(part.text(), [&](TextSpan inner, const AddedToken* found) {
      if (found == nullptr) return visit_text(&part, inner);
      const size_t begin = part.original(inner.begin);
      visit_token(found->id, {begin, part.original(inner.end)});
    });
  });
}

std::vector<int32_t> CharacterBpeTokenizer::encode_parts(std::string_view text, const AddedSearches& searches) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  for_each_part(
      text, searches, [&ids](int32_t id, TextSpan) { ids.push_back(id); },
      [&](SpacedText* part, TextSpan within) {
        encode_spaced(part->text().substr(within.begin, within.end - within.begin), &ids);
      });
  return ids;
}

std::vector<int32_t> CharacterBpeTokenizer::encode(std::string_view text) const {
  return encode_parts(text, added_.in_text());
}

std::vector<int32_t> CharacterBpeTokenizer::encode_with_special(std::string_view text) const {
  return encode_parts(text, added_.all());
}

void CharacterBpeTokenizer::add_spans(std::span<const int32_t> ids, SpacedText* text, size_t begin,
                                      std::vector<TextSpan>* spans) const {
  size_t character_end = begin;  // of the character whose bytes are tokens
  for (const int32_t id : ids) {
    if (byte_of_[static_cast<size_t>(id)] < 0) {
      const size_t end = begin + definition_.tokens[static_cast<size_t>(id)].size();
      const size_t first = text->original(begin);
      spans->push_back({first, text->original(end)});
      begin = end;
    } else if (begin++ < character_end) {
      spans->push_back(spans->back());
    } else {
      character_end = begin - 1;
      if (next_code_point(text->text(), &character_end) < 0) ++character_end;
      const size_t first = text->original(begin - 1);
      spans->push_back({first, text->original(character_end)});
    }
  }
}

TokensWithSpans CharacterBpeTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result;
  for_each_part(
      text, added_.in_text(),
      [&result](int32_t id, TextSpan span) {
        result.ids.push_back(id);
        result.spans.push_back(span);
      },
      [&](SpacedText* part, TextSpan within) {
        const size_t before = result.ids.size();
        encode_spaced(part->text().substr(within.begin, within.end - within.begin), &result.ids);
        add_spans(std::span(result.ids).subspan(before), part, within.begin, &result.spans);
      });
  return result;
}

std::string CharacterBpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    if (const int16_t byte = byte_of_[static_cast<size_t>(id)]; byte >= 0) {
      text += static_cast<char>(byte);
      continue;
    }
    const auto normal = normal_texts_.find(id);
    std::string_view token =
        normal == normal_texts_.end() ? definition_.tokens[static_cast<size_t>(id)] : normal->second;
    for (size_t at = token.find(kMetaspace); at != std::string_view::npos; at = token.find(kMetaspace)) {
      text += token.substr(0, at);
      text += ' ';
      token.remove_prefix(at + kMetaspace.size());
    }
    text += token;
  }
  return definition_.strips_space && text.starts_with(' ') ? text.substr(1) : text;
}

std::string CharacterBpeTokenizer::spelling(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return definition_.tokens[static_cast<size_t>(id)];
}

std::optional<int32_t> CharacterBpeTokenizer::special(SpecialToken role) const {
  const auto found = roles_.find(role);
  return found == roles_.end() ? std::nullopt : std::optional(found->second);
}

bool CharacterBpeTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (is_among(definition_.special, id) || added_.find(id) != nullptr) return false;
  const int16_t byte = byte_of_[static_cast<size_t>(id)];
  const std::string& token = definition_.tokens[static_cast<size_t>(id)];
  const auto first = static_cast<unsigned char>(byte >= 0 ? byte : token[0]);
  return !token.starts_with(kMetaspace) && (first >= 0x80 || std::isalnum(first) != 0);
}

std::optional<Vocabulary> CharacterBpeTokenizer::vocabulary() const {
  Vocabulary vocabulary = vocabulary_of(definition_.tokens, definition_.special, definition_.added);
  vocabulary.merges = definition_.merges;
  for (const int32_t id : of_byte_) vocabulary.tokens.at(static_cast<size_t>(id)).kind = TokenKind::kByte;
  return vocabulary;
}

nlohmann::json CharacterBpeTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  write_character_bpe(definition_, &object);
  return object;
}

std::unique_ptr<CharacterBpeTokenizer> CharacterBpeTokenizer::from_json(const nlohmann::json& object,
                                                                        const std::string& where) {
  return std::make_unique<CharacterBpeTokenizer>(read_character_bpe(object, where), where);
}

}  // namespace headshare
