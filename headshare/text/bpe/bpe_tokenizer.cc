#include "headshare/text/bpe/bpe_tokenizer.h"

#include <algorithm>
#include <cctype>

#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/interface/word_cache.h"

namespace headshare {

struct BpeTokenizer::Worker {
  explicit Worker(const WordSplitter& splitter) : cursor(splitter) {}
  WordSplitter::Cursor cursor;
  WordCache cache;
  BpeMerger::Scratch scratch;
};

namespace {

// Returns the roles by the tokens' texts; none but the end of a text unless both of RoBERTa's borders are there.
std::map<SpecialToken, int32_t> roles_of(const BpeDefinition& definition) {
  constexpr std::pair<const char*, SpecialToken> kNames[] = {{"<s>", SpecialToken::kClassify},
                                                             {"</s>", SpecialToken::kSeparate},
                                                             {"<pad>", SpecialToken::kPadding},
                                                             {"<unk>", SpecialToken::kUnknown},
                                                             {"<mask>", SpecialToken::kMask}};
  std::map<SpecialToken, int32_t> roles;
  for (const int32_t id : definition.special) {
    for (const auto& [name, role] : kNames) {
      if (definition.tokens[static_cast<size_t>(id)] == name) roles.emplace(role, id);
    }
  }
  if (!roles.contains(SpecialToken::kClassify) || !roles.contains(SpecialToken::kSeparate)) roles.clear();
  if (definition.end_of_text) roles.emplace(SpecialToken::kEndOfText, *definition.end_of_text);
  return roles;
}

}  // namespace

BpeTokenizer::BpeTokenizer(BpeDefinition definition, const std::string& where)
    : definition_(std::move(definition)),
      roles_(roles_of(definition_)),
      merger_(definition_, where),
      splitter_(definition_.split) {
  std::vector<AddedToken> roles;
  for (const auto& [role, id] : roles_) {
    roles.push_back({.id = id, .text = definition_.tokens[static_cast<size_t>(id)], .special = true});
  }
  const auto as_it_is = [](std::string_view text) { return std::string(text); };
  added_ = AddedTokens(std::move(definition_.added), roles, definition_.tokens.size(), as_it_is, where);
  definition_.added = added_.listed();
  // Tokens that take white space, or whose text is not what they are written as, lose what stands in a text.
  lossless_ =
      !definition_.add_prefix_space &&
      std::none_of(definition_.added.begin(), definition_.added.end(), [this](const AddedToken& one) {
        return one.strips_left || one.strips_right || definition_.tokens[static_cast<size_t>(one.id)] != one.text;
      });
}

BpeTokenizer::~BpeTokenizer() = default;

void BpeTokenizer::encode_word(std::string_view word, Worker* worker, std::vector<int32_t>* ids) const {
  if (word.size() == 1) return ids->push_back(merger_.byte_id(word[0]));
  const std::span<const int32_t> known = worker->cache.find(word);
  if (!known.empty()) {
    ids->insert(ids->end(), known.begin(), known.end());
    return;
  }
  const size_t before = ids->size();
  merger_.merge(word, &worker->scratch, ids);
  worker->cache.insert(word, std::span(*ids).subspan(before));
}

void BpeTokenizer::encode_part(std::string_view text, std::vector<int32_t>* ids) const {
  std::string with_space;
  if (definition_.add_prefix_space && !text.empty() && text[0] != ' ') {
    with_space = " ";
    with_space += text;
    text = with_space;
  }
  workers_.run([&] { return std::make_unique<Worker>(splitter_); },
               [&](Worker& worker) {
                 worker.cursor.reset(text);
                 for (std::string_view word; worker.cursor.next(&word);) encode_word(word, &worker, ids);
               });
}

std::vector<int32_t> BpeTokenizer::encode_parts(std::string_view text, const AddedSearches& searches) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  searches.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) return ids.push_back(token->id);
    encode_part(text.substr(span.begin, span.end - span.begin), &ids);
  });
  return ids;
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const { return encode_parts(text, added_.in_text()); }

std::vector<int32_t> BpeTokenizer::encode_with_special(std::string_view text) const {
  return encode_parts(text, added_.all());
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    text += definition_.tokens[static_cast<size_t>(id)];
  }
  return text;
}

TokensWithSpans BpeTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result;
  added_.in_text().for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) {
      result.ids.push_back(token->id);
      return result.spans.push_back(span);
    }
    const size_t before = result.ids.size();
    encode_part(text.substr(span.begin, span.end - span.begin), &result.ids);
    size_t begin = span.begin;
    size_t added = definition_.add_prefix_space && text[begin] != ' ' ? 1 : 0;
    for (size_t i = before; i < result.ids.size(); ++i) {
      const size_t end = begin + definition_.tokens[static_cast<size_t>(result.ids[i])].size() - added;
      result.spans.push_back({begin, end});
      begin = end;
      added = 0;  // the space stands in the first token, which has at least its byte
    }
  });
  return result;
}

std::optional<int32_t> BpeTokenizer::special(SpecialToken role) const {
  const auto found = roles_.find(role);
  return found == roles_.end() ? std::nullopt : std::optional(found->second);
}

bool BpeTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (std::binary_search(definition_.special.begin(), definition_.special.end(), id)) return false;
  if (added_.find(id) != nullptr) return false;
  const auto first = static_cast<unsigned char>(definition_.tokens[static_cast<size_t>(id)][0]);
  return first >= 0x80 || std::isalnum(first) != 0;
}

std::optional<Vocabulary> BpeTokenizer::vocabulary() const {
  Vocabulary vocabulary = vocabulary_of(definition_.tokens, definition_.special, definition_.added);
  vocabulary.merges = definition_.merges;
  return vocabulary;
}

nlohmann::json BpeTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  write_bpe(definition_, &object);
  return object;
}

std::unique_ptr<BpeTokenizer> BpeTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  return std::make_unique<BpeTokenizer>(read_bpe(object, where), where);
}

}  // namespace headshare
