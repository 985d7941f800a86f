#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/interface/word_cache.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

// Tells whether Hugging Face's decoder writes a token without a space before it: signs and endings.
bool closes_up(std::string_view token) {
  static constexpr std::string_view kEndings[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [token](std::string_view ending) { return token.starts_with(ending); });
}

}  // namespace

struct WordPieceTokenizer::Worker {
  WordCache cache;
};

WordPieceTokenizer::WordPieceTokenizer(WordPieceDefinition definition, const std::string& where)
    : definition_(std::move(definition)) {
  const int64_t size = vocabulary_size();
  HS_CHECK(size > 0, where, ": an empty vocabulary");
  const std::vector<int32_t>& special = definition_.special;
  for (size_t i = 0; i < special.size(); ++i) {
    HS_CHECK(special[i] >= 0 && special[i] < size, where, ": the special id ", special[i], " is not among the ", size,
             " tokens");
    HS_CHECK(i == 0 || special[i - 1] < special[i], where, ": the special ids must ascend, but ", special[i],
             " follows ", special[i - 1]);
  }
  HS_CHECK(is_special(definition_.unknown), where, ": the id of unknown words, ", definition_.unknown,
           ", is not among the ", special.size(), " special ids");
  HS_CHECK(definition_.longest_word >= 1 && definition_.longest_word <= 1000, where, ": words of ",
           definition_.longest_word, " characters at most: it must be from 1 to 1000 (BERT: 100)");
  Ids all;
  for (int32_t id = 0; id < size; ++id) {
    const std::string& token = definition_.tokens[static_cast<size_t>(id)];
    HS_CHECK(!token.empty(), where, ": the token with id ", id, " is empty");
    check_utf8(token, join_text(where, ": the token with id ", id));
    const auto [at, fresh] = all.emplace(token, id);
    HS_CHECK(fresh, where, ": the token ", brief_json(token), " has two ids, ", at->second, " and ", id);
    if (!is_special(id)) add_token(id);
  }
  for (int sign = 0; sign < 128; ++sign) {
    const char byte = static_cast<char>(sign);
    const auto found = first_.find(std::string_view(&byte, 1));
    sign_ids_[sign] = found == first_.end() ? definition_.unknown : found->second;
  }
  std::vector<AddedToken> roles;
  for (const SpecialToken role : kRoles) {
    if (const auto id = WordPieceTokenizer::special(role)) {
      roles.push_back({.id = *id, .text = definition_.tokens[static_cast<size_t>(*id)], .special = true});
    }
  }
  const auto normal = [this](std::string_view text) { return bert_normal_text(text, definition_.normalization).text; };
  added_ = AddedTokens(std::move(definition_.added), roles, definition_.tokens.size(), normal, where);
  definition_.added = added_.listed();
}

WordPieceTokenizer::~WordPieceTokenizer() = default;

void WordPieceTokenizer::add_token(int32_t id) {
  const std::string_view token = definition_.tokens[static_cast<size_t>(id)];
  longest_ = std::max(longest_, token.size());
  if (!token.starts_with(kContinuationPrefix)) {
    first_.emplace(token, id);
  } else if (token.size() > kContinuationPrefix.size()) {
    next_.emplace(token.substr(kContinuationPrefix.size()), id);
  }
}

bool WordPieceTokenizer::is_special(int32_t id) const {
  return std::binary_search(definition_.special.begin(), definition_.special.end(), id);
}

int32_t WordPieceTokenizer::longest_token(std::string_view rest, const Ids& among, size_t* bytes) const {
  size_t end = std::min(rest.size(), longest_);
  for (; end > 0; --end) {
    const bool inside_character = end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xC0) == 0x80;
    if (inside_character) continue;
    const auto found = among.find(rest.substr(0, end));
    if (found == among.end()) continue;
    *bytes = end;
    return found->second;
  }
  return -1;
}

void WordPieceTokenizer::spell(const BertWord& word, std::vector<int32_t>* ids, std::vector<TextSpan>* spans) const {
  const size_t before = ids->size();
  const auto unknown = [&] {
    ids->resize(before);
    ids->push_back(definition_.unknown);
    if (spans == nullptr) return;
    spans->resize(before);
    spans->push_back(word.span);
  };
  if (word.characters > static_cast<size_t>(definition_.longest_word)) return unknown();
  const std::string_view text = word.text;
  for (size_t begin = 0, bytes = 0; begin < text.size(); begin += bytes) {
    const int32_t id = longest_token(text.substr(begin), begin == 0 ? first_ : next_, &bytes);
    if (id < 0) return unknown();
    ids->push_back(id);
    if (spans != nullptr) spans->push_back({word.sources[begin].begin, word.sources[begin + bytes - 1].end});
  }
}

bool WordPieceTokenizer::token_may_begin(std::string_view rest, size_t bytes, const AddedSearch& normalized) const {
  const auto normal = [this](std::string_view text) { return bert_normal_text(text, definition_.normalization).text; };
  const std::string piece = normal(rest.substr(0, bytes));
  if (!added_.all().normalized.may_begin_in(piece)) return false;
  // The loop takes as much of what follows as a token can take; normalisation may make it shorter.
  for (size_t wanted = bytes + normalized.longest();; wanted *= 2) {
    size_t end = std::min(wanted, rest.size());
    while (end < rest.size() && byte_role(rest[end]) == ByteRole::kWord) ++end;
    const std::string text = normal(rest.substr(0, end));
    if (end < rest.size() && text.size() < piece.size() + normalized.longest()) continue;
    return normalized.begins_within(text, piece.size());
  }
}

bool WordPieceTokenizer::encode_piece(std::string_view rest, size_t bytes, const AddedSearch& normalized,
                                      Worker* worker, std::vector<int32_t>* ids) const {
  const std::string_view piece = rest.substr(0, bytes);
  const std::span<const int32_t> known = worker->cache.find(piece);
  if (!known.empty()) {
    ids->insert(ids->end(), known.begin(), known.end());
    return true;
  }
  // Pieces in which a token may begin are not remembered, so that what is remembered need not be asked.
  const bool suspect = !added_.all().normalized.empty() &&
                       added_.all().normalized.may_begin_in(bert_normal_text(piece, definition_.normalization).text);
  if (suspect && token_may_begin(rest, bytes, normalized)) return false;
  const size_t before = ids->size();
  for_each_bert_word(piece, definition_.normalization, static_cast<size_t>(definition_.longest_word),
                     [&](const BertWord& word) { spell(word, ids, nullptr); });
  if (!suspect && ids->size() > before) worker->cache.insert(piece, std::span(*ids).subspan(before));
  return true;
}

bool WordPieceTokenizer::encode_part(std::string_view text, const AddedSearch& normalized, Worker* worker,
                                     std::vector<int32_t>* ids) const {
  const size_t before = ids->size();
  const bool clean = definition_.normalization.clean_text;
  for (size_t end = 0; end < text.size();) {
    const size_t begin = end++;
    const ByteRole role = byte_role(text[begin]);
    bool done = true;
    if (role == ByteRole::kWord) {
      while (end < text.size() && byte_role(text[end]) == ByteRole::kWord) ++end;
      done = encode_piece(text.substr(begin), end - begin, normalized, worker, ids);
    } else if (normalized.may_begin_with(role == ByteRole::kSpace && clean ? ' ' : text[begin])) {
      done = !token_may_begin(text.substr(begin), 1, normalized);
    }
    if (!done) {
      ids->resize(before);
      return false;
    }
    if (role == ByteRole::kSign) ids->push_back(sign_ids_[static_cast<unsigned char>(text[begin])]);
  }
  return true;
}

void WordPieceTokenizer::encode_normalised(std::string_view text, size_t offset, const AddedSearch& normalized,
                                           std::vector<int32_t>* ids, std::vector<TextSpan>* spans) const {
  const BertText normal = bert_normal_text(text, definition_.normalization);
  const auto source = [&](TextSpan bytes) {
    return TextSpan{offset + normal.sources[bytes.begin].begin, offset + normal.sources[bytes.end - 1].end};
  };
  normalized.for_each_part(normal.text, [&](TextSpan part, const AddedToken* token) {
    if (token != nullptr) {
      ids->push_back(token->id);
      if (spans != nullptr) spans->push_back(source(part));
      return;
    }
    const std::string_view words = std::string_view(normal.text).substr(part.begin, part.end - part.begin);
    for_each_bert_word(words, kNoNormalization, static_cast<size_t>(definition_.longest_word), [&](BertWord word) {
      const auto original = [&](TextSpan in) { return source({part.begin + in.begin, part.begin + in.end}); };
      for (TextSpan& one : word.sources) one = original(one);
      word.span = original(word.span);
      spell(word, ids, spans);
    });
  });
}

std::vector<int32_t> WordPieceTokenizer::encode_parts(std::string_view text, const AddedSearches& searches) const {
  check_utf8(text, "tokenizer 'wordpiece'");
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  workers_.run([] { return std::make_unique<Worker>(); },
               [&](Worker& worker) {
                 searches.plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
                   if (token != nullptr) return ids.push_back(token->id);
                   const std::string_view part = text.substr(span.begin, span.end - span.begin);
                   if (encode_part(part, searches.normalized, &worker, &ids)) return;
                   encode_normalised(part, span.begin, searches.normalized, &ids, nullptr);
                 });
               });
  return ids;
}

std::vector<int32_t> WordPieceTokenizer::encode(std::string_view text) const {
  return encode_parts(text, added_.in_text());
}

std::vector<int32_t> WordPieceTokenizer::encode_with_special(std::string_view text) const {
  return encode_parts(text, added_.all());
}

TokensWithSpans WordPieceTokenizer::encode_with_spans(std::string_view text) const {
  check_utf8(text, "tokenizer 'wordpiece'");
  TokensWithSpans result;
  added_.in_text().plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) {
      result.ids.push_back(token->id);
      return result.spans.push_back(span);
    }
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    const AddedSearch& normalized = added_.in_text().normalized;
    if (!normalized.empty()) return encode_normalised(part, span.begin, normalized, &result.ids, &result.spans);
    const size_t before = result.spans.size();
    for_each_bert_word(part, definition_.normalization, static_cast<size_t>(definition_.longest_word),
                       [&](const BertWord& word) { spell(word, &result.ids, &result.spans); });
    for (size_t i = before; i < result.spans.size(); ++i) {
      result.spans[i].begin += span.begin;
      result.spans[i].end += span.begin;
    }
  });
  return result;
}

std::string WordPieceTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    check_token_id(ids[i], vocabulary_size());
    std::string_view token = definition_.tokens[static_cast<size_t>(ids[i])];
    if (i > 0 && token.starts_with(kContinuationPrefix)) {
      token.remove_prefix(kContinuationPrefix.size());
    } else if (i > 0 && !closes_up(token)) {
      text += ' ';
    }
    text += token;
  }
  return text;
}

std::optional<int32_t> WordPieceTokenizer::special(SpecialToken role) const {
  if (role == SpecialToken::kUnknown) return definition_.unknown;
  for (const auto& [text, its_role] : kBertSpecialTokens) {
    if (its_role != role) continue;
    for (const int32_t id : definition_.special) {
      if (definition_.tokens[static_cast<size_t>(id)] == text) return id;
    }
  }
  return std::nullopt;
}

bool WordPieceTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return !is_special(id) && added_.find(id) == nullptr &&
         definition_.tokens[static_cast<size_t>(id)].starts_with(kContinuationPrefix);
}

std::optional<Vocabulary> WordPieceTokenizer::vocabulary() const {
  return vocabulary_of(definition_.tokens, definition_.special, definition_.added);
}

nlohmann::json WordPieceTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  write_wordpiece(definition_, &object);
  return object;
}

std::unique_ptr<WordPieceTokenizer> WordPieceTokenizer::from_json(const nlohmann::json& object,
                                                                  const std::string& where) {
  return std::make_unique<WordPieceTokenizer>(read_wordpiece(object, where), where);
}

}  // namespace headshare
