#include "headshare/text/bpe/bpe_tokenizer.h"

#include <algorithm>
#include <cctype>

#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/word_cache.h"

namespace headshare {

struct BpeTokenizer::Worker {
  explicit Worker(const WordSplitter& splitter) : cursor(splitter) {}
  WordSplitter::Cursor cursor;
  WordCache cache;
  BpeMerger::Scratch scratch;
};

namespace {

// By their texts; none but the end of a text unless both of RoBERTa's borders are there.
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
      splitter_(definition_.split) {}

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

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const {
  if (definition_.add_prefix_space && !text.empty() && text[0] != ' ') {
    std::string with_space = " ";
    with_space += text;
    return encode(with_space);
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  workers_.run([&] { return std::make_unique<Worker>(splitter_); },
               [&](Worker& worker) {
                 worker.cursor.reset(text);
                 for (std::string_view word; worker.cursor.next(&word);) encode_word(word, &worker, &ids);
               });
  return ids;
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
  TokensWithSpans result = {encode(text), {}};
  size_t begin = 0;
  size_t added = definition_.add_prefix_space && !text.empty() && text[0] != ' ' ? 1 : 0;
  for (const int32_t id : result.ids) {
    const size_t end = begin + definition_.tokens[static_cast<size_t>(id)].size() - added;
    result.spans.push_back({begin, end});
    begin = end;
    added = 0;  // the space stands in the first token, which has at least its byte
  }
  return result;
}

std::optional<int32_t> BpeTokenizer::special(SpecialToken role) const {
  const auto found = roles_.find(role);
  return found == roles_.end() ? std::nullopt : std::optional(found->second);
}

bool BpeTokenizer::strips_left(int32_t id) const {
  return std::binary_search(definition_.strips_left.begin(), definition_.strips_left.end(), id);
}

bool BpeTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (std::binary_search(definition_.special.begin(), definition_.special.end(), id)) return false;
  const auto first = static_cast<unsigned char>(definition_.tokens[static_cast<size_t>(id)][0]);
  return first >= 0x80 || std::isalnum(first) != 0;
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
