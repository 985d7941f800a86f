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

struct NamedRole {
  std::string_view text;
  SpecialToken role;
};
constexpr NamedRole kRobertaRoles[] = {{"<s>", SpecialToken::kClassify},
                                       {"</s>", SpecialToken::kSeparate},
                                       {"<pad>", SpecialToken::kPadding},
                                       {"<unk>", SpecialToken::kUnknown},
                                       {"<mask>", SpecialToken::kMask}};
constexpr NamedRole kBertRoles[] = {{"[CLS]", SpecialToken::kClassify},
                                    {"[SEP]", SpecialToken::kSeparate},
                                    {"[PAD]", SpecialToken::kPadding},
                                    {"[UNK]", SpecialToken::kUnknown},
                                    {"[MASK]", SpecialToken::kMask}};

// Returns the roles by the tokens' texts. An encoder's vocabulary without both borders of texts has none but the end of
// a text.
std::map<SpecialToken, int32_t> roles_of(const BpeDefinition& definition) {
  std::map<SpecialToken, int32_t> roles;
  for (const int32_t id : definition.special) {
    for (const auto& [name, role] : definition.roles == BpeRoles::kBert ? kBertRoles : kRobertaRoles) {
      if (definition.tokens[static_cast<size_t>(id)] == name) roles.emplace(role, id);
    }
  }
  if (definition.begin_of_text || definition.roles == BpeRoles::kDecoder) {
    roles.erase(SpecialToken::kClassify);
    roles.erase(SpecialToken::kSeparate);
    roles.erase(SpecialToken::kMask);
  } else if (!roles.contains(SpecialToken::kClassify) || !roles.contains(SpecialToken::kSeparate)) {
    roles.clear();
  }
  if (definition.begin_of_text) roles.emplace(SpecialToken::kBeginOfText, *definition.begin_of_text);
  if (definition.end_of_text) roles.emplace(SpecialToken::kEndOfText, *definition.end_of_text);
  return roles;
}

// Returns the ids of the tokens that a word may be, by their bytes.
std::unordered_map<std::string_view, int32_t> ordinary_tokens(const BpeDefinition& definition) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const bool special = std::binary_search(definition.special.begin(), definition.special.end(), id);
    if (!special) ids.emplace(definition.tokens[id], static_cast<int32_t>(id));
  }
  return ids;
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
  const auto as_normal = [this](std::string_view text) { return normal(text); };
  added_ = AddedTokens(std::move(definition_.added), roles, definition_.tokens.size(), as_normal, where);
  definition_.added = added_.listed();
  for (const AddedToken& one : definition_.added) {
    if (one.normalized && normal(one.text) != one.text) normal_texts_.emplace(one.id, normal(one.text));
  }
  if (definition_.whole_words) whole_words_ = ordinary_tokens(definition_);
  // Tokens that take white space, or whose text is not what they are written as, lose what stands in a text.
  lossless_ =
      !definition_.add_prefix_space && !definition_.composes &&
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
  const auto whole = whole_words_.find(word);
  if (whole != whole_words_.end()) {
    ids->push_back(whole->second);
  } else {
    merger_.merge(word, &worker->scratch, ids);
  }
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

std::string BpeTokenizer::normal(std::string_view text) const {
  return std::string(definition_.composes ? ComposedText(text).text() : text);
}

TextSpan BpeTokenizer::Part::original(TextSpan bytes) const {
  const TextSpan span = composed == nullptr ? bytes : composed->original(bytes);
  return {offset + span.begin, offset + span.end};
}

void BpeTokenizer::for_each_part(std::string_view text, const AddedSearches& searches,
                                 const std::function<void(const Part&)>& visit) const {
  const auto part_of = [](std::string_view whole, TextSpan span) {
    return whole.substr(span.begin, span.end - span.begin);
  };
  if (!definition_.composes) {
    searches.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
      visit({.text = part_of(text, span), .token = token, .span = span});
    });
    return;
  }
  searches.plain.for_each_part(text, [&](TextSpan outer, const AddedToken* token) {
    const std::string_view piece = part_of(text, outer);
    if (token != nullptr) return visit({.text = piece, .token = token, .span = outer});
    const ComposedText composed(piece);
    const auto inner = [&](TextSpan span, const AddedToken* found) {
      visit({.text = part_of(composed.text(), span),
             .token = found,
             .span = span,
             .offset = outer.begin,
             .composed = &composed});
    };
    if (searches.normalized.empty()) return inner({0, composed.text().size()}, nullptr);
    searches.normalized.for_each_part(composed.text(), inner);
  });
}

std::vector<int32_t> BpeTokenizer::encode_parts(std::string_view text, const AddedSearches& searches) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  for_each_part(text, searches, [&](const Part& part) {
    if (part.token != nullptr) return ids.push_back(part.token->id);
    encode_part(part.text, &ids);
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
    const auto normal = normal_texts_.find(id);
    text += normal == normal_texts_.end() ? definition_.tokens[static_cast<size_t>(id)] : normal->second;
  }
  return text;
}

TokensWithSpans BpeTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result;
  for_each_part(text, added_.in_text(), [&](const Part& part) {
    if (part.token != nullptr) {
      result.ids.push_back(part.token->id);
      return result.spans.push_back(part.original(part.span));
    }
    const size_t before = result.ids.size();
    encode_part(part.text, &result.ids);
    size_t begin = part.span.begin;
    size_t added = definition_.add_prefix_space && part.text[0] != ' ' ? 1 : 0;
    for (size_t i = before; i < result.ids.size(); ++i) {
      const size_t end = begin + definition_.tokens[static_cast<size_t>(result.ids[i])].size() - added;
      result.spans.push_back(part.original({begin, end}));
      begin = end;
      added = 0;  // the space stands in the first token, which has at least its byte
    }
  });
  return result;
}

int64_t BpeTokenizer::pair_separators() const {
  return special(SpecialToken::kClassify) && definition_.roles == BpeRoles::kRoberta ? 2 : 1;
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
  object["version"] = bpe_version(definition_);
  write_bpe(definition_, &object);
  return object;
}

std::unique_ptr<BpeTokenizer> BpeTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  return std::make_unique<BpeTokenizer>(read_bpe(object, where), where);
}

}  // namespace headshare
