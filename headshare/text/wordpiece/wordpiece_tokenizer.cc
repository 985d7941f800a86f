#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/word_cache.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

// Signs and endings that Hugging Face's decoder writes without a space before them.
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

void WordPieceTokenizer::encode_piece(std::string_view piece, Worker* worker, std::vector<int32_t>* ids) const {
  const std::span<const int32_t> known = worker->cache.find(piece);
  if (!known.empty()) {
    ids->insert(ids->end(), known.begin(), known.end());
    return;
  }
  const size_t before = ids->size();
  for_each_bert_word(piece, definition_.normalization, static_cast<size_t>(definition_.longest_word),
                     [&](const BertWord& word) { spell(word, ids, nullptr); });
  if (ids->size() > before) worker->cache.insert(piece, std::span(*ids).subspan(before));
}

std::vector<int32_t> WordPieceTokenizer::encode(std::string_view text) const {
  check_utf8(text, "tokenizer 'wordpiece'");
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  workers_.run([] { return std::make_unique<Worker>(); },
               [&](Worker& worker) {
                 for (size_t end = 0; end < text.size();) {
                   const size_t begin = end++;
                   const ByteRole role = byte_role(text[begin]);
                   if (role == ByteRole::kSign) ids.push_back(sign_ids_[static_cast<unsigned char>(text[begin])]);
                   if (role != ByteRole::kWord) continue;
                   while (end < text.size() && byte_role(text[end]) == ByteRole::kWord) ++end;
                   encode_piece(text.substr(begin, end - begin), &worker, &ids);
                 }
               });
  return ids;
}

TokensWithSpans WordPieceTokenizer::encode_with_spans(std::string_view text) const {
  check_utf8(text, "tokenizer 'wordpiece'");
  TokensWithSpans result;
  for_each_bert_word(text, definition_.normalization, static_cast<size_t>(definition_.longest_word),
                     [&](const BertWord& word) { spell(word, &result.ids, &result.spans); });
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
  return !is_special(id) && definition_.tokens[static_cast<size_t>(id)].starts_with(kContinuationPrefix);
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
