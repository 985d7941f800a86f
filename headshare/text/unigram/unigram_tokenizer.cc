#include "headshare/text/unigram/unigram_tokenizer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/interface/word_cache.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/metaspace.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/unigram/unigram_file.h"

namespace headshare {
namespace {

constexpr int32_t kMetaspacePoint = 0x2581;

bool holds(const std::vector<int32_t>& ids, int32_t id) { return std::binary_search(ids.begin(), ids.end(), id); }

void check_ids(const std::vector<int32_t>& ids, size_t tokens, const char* what, const std::string& where) {
  for (size_t i = 0; i < ids.size(); ++i) {
    HS_CHECK(ids[i] >= 0 && static_cast<size_t>(ids[i]) < tokens, where, ": the ", what, " id ", ids[i],
             " is not among the ", tokens, " tokens");
    HS_CHECK(i == 0 || ids[i - 1] < ids[i], where, ": the ", what, " ids must ascend, but ", ids[i], " follows ",
             ids[i - 1]);
  }
}

void check_tokens(const UnigramDefinition& d, const std::string& where) {
  HS_CHECK(!d.tokens.empty(), where, ": an empty vocabulary");
  HS_CHECK(d.scores.size() == d.tokens.size(), where, ": ", d.scores.size(), " scores for ", d.tokens.size(),
           " tokens");
  std::unordered_map<std::string_view, size_t> all;
  for (size_t id = 0; id < d.tokens.size(); ++id) {
    const std::string& token = d.tokens[id];
    const std::string name = join_text(where, ": the token with id ", id);
    HS_CHECK(!token.empty() && token.size() <= kLongestPiece, name, " has ", token.size(), " bytes; wanted are 1 to ",
             kLongestPiece);
    check_utf8(token, name);
    HS_CHECK(std::isfinite(d.scores[id]), name, " has no finite score");
    const auto [at, fresh] = all.emplace(token, id);
    HS_CHECK(fresh, where, ": the token ", brief_json(token), " has two ids, ", at->second, " and ", id);
  }
}

bool is_added_special(const UnigramDefinition& d, int32_t id) {
  return std::any_of(d.added.begin(), d.added.end(),
                     [id](const AddedToken& one) { return one.special && one.id == id; });
}

UnigramModel model_of(const UnigramDefinition& d) {
  UnigramModel::Options options{.tokens = &d.tokens,
                                .scores = &d.scores,
                                .never = std::vector<bool>(d.tokens.size()),
                                .unknown = d.unknown,
                                .byte_fallback = d.byte_fallback};
  for (const int32_t id : d.special) options.never[static_cast<size_t>(id)] = true;
  return UnigramModel(options);
}

std::string utf8_of(const NormalText& characters) {
  std::string text;
  for (const NormalCharacter& one : characters) append_utf8(one.code_point, &text);
  return text;
}

// Collects a word with U+2581 before it, and where its bytes come from.
class Words {
 public:
  Words(const UnigramModel& model, size_t offset, const std::function<void(int32_t, TextSpan)>& visit)
      : model_(model), offset_(offset), visit_(visit) {}

  void add(int32_t point, const NormalCharacter& from) {
    if (point == kMetaspacePoint) end();
    append_utf8(point, &text_);
    from_.resize(text_.size(), from);
  }
  bool empty() const { return text_.empty(); }

  void end() {
    if (text_.empty()) return;
    model_.for_each_piece(text_, [this](int32_t id, TextSpan bytes) {
      visit_(id, {offset_ + from_[bytes.begin].begin, offset_ + from_[bytes.end - 1].end});
    });
    text_.clear();
    from_.clear();
  }

 private:
  const UnigramModel& model_;
  const size_t offset_;
  const std::function<void(int32_t, TextSpan)>& visit_;
  std::string text_;
  NormalText from_;  // for each byte
};

}  // namespace

struct UnigramTokenizer::Worker {
  WordCache cache;
};

UnigramTokenizer::UnigramTokenizer(UnigramDefinition definition, const std::string& where)
    : definition_(std::move(definition)), where_(where) {
  const UnigramDefinition& d = definition_;
  check_tokens(d, where);
  check_ids(d.special, d.tokens.size(), "special", where);
  HS_CHECK(holds(d.special, d.unknown), where, ": the id of unknown pieces, ", d.unknown, ", is not among the ",
           d.special.size(), " special ids");
  HS_CHECK(d.pair_separators == 1 || d.pair_separators == 2, where, ": ", d.pair_separators,
           " separators between the texts of a pair; there are 1 or 2");
  HS_CHECK(!d.language || (is_added_special(d, d.language->id) && UnigramTokenizer::special(SpecialToken::kSeparate)),
           where, ": the language's token, ", d.language ? d.language->id : 0,
           ", must be a special added token and needs a </s> that ends texts");
  model_ = model_of(d);
  piecewise_ = works_piecewise(d.steps) && white_parts_words();
  std::vector<AddedToken> roles;
  for (const SpecialToken role : kRoles) {
    if (const auto id = UnigramTokenizer::special(role)) {
      roles.push_back({.id = *id, .text = d.tokens[static_cast<size_t>(*id)], .special = true});
    }
  }
  const auto as_normal = [this](std::string_view text) { return utf8_of(normal(text)); };
  added_ = AddedTokens(std::move(definition_.added), roles, d.tokens.size(), as_normal, where);
  definition_.added = added_.listed();
}

UnigramTokenizer::~UnigramTokenizer() = default;

std::string_view UnigramTokenizer::white() const { return definition_.splits_at_white ? " \n\t" : " "; }

// A damaged character map makes a letter of white space, or nothing, and then words go on behind it.
bool UnigramTokenizer::white_parts_words() const {
  const std::string_view all = white();
  return std::all_of(all.begin(), all.end(), [this](char one) {
    for (const size_t count : {1, 2}) {
      const NormalText characters = normal(std::string(count, one));
      if (characters.empty()) return false;
      const int32_t first = characters.front().code_point;
      if (!is_bert_space(first) && first != kMetaspacePoint) return false;
    }
    return true;
  });
}

size_t UnigramTokenizer::next_piece(std::string_view rest) const {
  return piecewise_ ? piece_bytes(rest, white()) : rest.size();
}

bool UnigramTokenizer::token_may_begin(std::string_view rest, size_t bytes, const AddedSearch& normalized) const {
  const size_t piece = utf8_of(normal(rest.substr(0, bytes))).size();
  // The loop takes as much of what follows as a token can take; normalisation may make it shorter.
  for (size_t wanted = bytes + normalized.longest();; wanted *= 2) {
    size_t end = bytes;
    while (end < rest.size() && end < wanted) end += next_piece(rest.substr(end));
    const std::string text = utf8_of(normal(rest.substr(0, end)));
    if (end < rest.size() && text.size() < piece + normalized.longest()) continue;
    return normalized.begins_within(text, piece);
  }
}

void UnigramTokenizer::encode_characters(std::span<const NormalCharacter> characters, size_t offset, bool first,
                                         const Visit& visit) const {
  Words words(model_, offset, visit);
  const bool by_white = definition_.splits_at_white;
  bool begins = by_white || first;  // what comes next begins a word
  for (const NormalCharacter& one : characters) {
    int32_t point = one.code_point;
    if (by_white && is_bert_space(point)) {
      words.end();
      begins = true;
      continue;
    }
    if (point == ' ') point = kMetaspacePoint;
    if (begins && definition_.prefix && point != kMetaspacePoint) words.add(kMetaspacePoint, one);
    begins = false;
    words.add(point, one);
  }
  words.end();
}

bool UnigramTokenizer::encode_part(std::string_view text, const AddedSearch& normalized, Worker* worker,
                                   std::vector<int32_t>* ids) const {
  const auto append = [ids](int32_t id, TextSpan) { ids->push_back(id); };
  const AddedSearch& any = added_.all().normalized;
  const size_t start = ids->size();
  for (size_t begin = 0, bytes = 0; begin < text.size(); begin += bytes) {
    bytes = next_piece(text.substr(begin));
    const std::string_view piece = text.substr(begin, bytes);
    // The same piece is cut in another way where it begins a part, unless white space parts all words.
    bool cached = definition_.splits_at_white || begin > 0;
    const std::span<const int32_t> known = cached ? worker->cache.find(piece) : std::span<const int32_t>();
    if (!known.empty()) {
      ids->insert(ids->end(), known.begin(), known.end());
      continue;
    }
    const NormalText characters = normal(piece);
    // Pieces in which a token may begin are not remembered, so that what is remembered need not be asked.
    if (!any.empty() && any.may_begin_in(utf8_of(characters))) {
      cached = false;
      if (token_may_begin(text.substr(begin), bytes, normalized)) {
        ids->resize(start);
        return false;
      }
    }
    const size_t before = ids->size();
    encode_characters(characters, begin, begin == 0, append);
    if (cached && ids->size() > before) worker->cache.insert(piece, std::span(*ids).subspan(before));
  }
  return true;
}

void UnigramTokenizer::encode_normalised(std::string_view text, size_t offset, const AddedSearch& normalized,
                                         const Visit& visit) const {
  const NormalText characters = normal(text);
  std::string normal_text;
  std::vector<size_t> numbers;  // of the characters, for each byte
  for (size_t i = 0; i < characters.size(); ++i) {
    append_utf8(characters[i].code_point, &normal_text);
    numbers.resize(normal_text.size(), i);
  }
  normalized.for_each_part(normal_text, [&](TextSpan part, const AddedToken* token) {
    const size_t first = numbers[part.begin];
    const size_t last = numbers[part.end - 1];
    if (token != nullptr) return visit(token->id, {offset + characters[first].begin, offset + characters[last].end});
    encode_characters(std::span(characters).subspan(first, last - first + 1), offset, true, visit);
  });
}

std::vector<int32_t> UnigramTokenizer::encode_parts(std::string_view text, const AddedSearches& searches) const {
  check_utf8(text, "tokenizer 'unigram'");
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  const auto append = [&ids](int32_t id, TextSpan) { ids.push_back(id); };
  workers_.run([] { return std::make_unique<Worker>(); },
               [&](Worker& worker) {
                 searches.plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
                   if (token != nullptr) return ids.push_back(token->id);
                   const std::string_view part = text.substr(span.begin, span.end - span.begin);
                   if (encode_part(part, searches.normalized, &worker, &ids)) return;
                   encode_normalised(part, span.begin, searches.normalized, append);
                 });
               });
  return ids;
}

std::vector<int32_t> UnigramTokenizer::encode(std::string_view text) const {
  return encode_parts(text, added_.in_text());
}

std::vector<int32_t> UnigramTokenizer::encode_with_special(std::string_view text) const {
  return encode_parts(text, added_.all());
}

TokensWithSpans UnigramTokenizer::encode_with_spans(std::string_view text) const {
  check_utf8(text, "tokenizer 'unigram'");
  TokensWithSpans result;
  const Visit append = [&](int32_t id, TextSpan span) {
    result.ids.push_back(id);
    result.spans.push_back(span);
  };
  const AddedSearches& searches = added_.in_text();
  searches.plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    if (token != nullptr) return append(token->id, span);
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    if (!searches.normalized.empty()) return encode_normalised(part, span.begin, searches.normalized, append);
    for (size_t begin = 0, bytes = 0; begin < part.size(); begin += bytes) {
      bytes = next_piece(part.substr(begin));
      encode_characters(normal(part.substr(begin, bytes)), span.begin + begin, begin == 0, append);
    }
  });
  return result;
}

namespace {

// Returns the text of bytes that need not be UTF-8.
std::string readable(const std::string& bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const size_t valid = valid_utf8_prefix(std::string_view(bytes).substr(at));
    text += bytes.substr(at, valid);
    at += valid;
    if (at == bytes.size()) break;
    text += "\xEF\xBF\xBD";  // U+FFFD
    ++at;
  }
  return text;
}

}  // namespace

std::string UnigramTokenizer::spelling(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return definition_.tokens[static_cast<size_t>(id)];
}

std::string UnigramTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  std::string bytes;  // of byte tokens side by side
  for (size_t i = 0; i < ids.size(); ++i) {
    check_token_id(ids[i], vocabulary_size());
    if (const int byte = model_.byte_of(ids[i]); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    text += readable(std::exchange(bytes, ""));
    std::string_view token = definition_.tokens[static_cast<size_t>(ids[i])];
    for (size_t at = token.find(kMetaspace); at != std::string_view::npos; at = token.find(kMetaspace)) {
      text += token.substr(0, at);
      if (i > 0 || !definition_.prefix) text += ' ';
      token.remove_prefix(at + kMetaspace.size());
    }
    text += token;
  }
  return text + readable(bytes);
}

namespace {

struct RoleName {
  SpecialToken role;
  std::string_view text;
};
constexpr RoleName kNames[] = {{SpecialToken::kPadding, "<pad>"},  {SpecialToken::kPadding, "[PAD]"},
                               {SpecialToken::kClassify, "[CLS]"}, {SpecialToken::kClassify, "<s>"},
                               {SpecialToken::kSeparate, "[SEP]"}, {SpecialToken::kSeparate, "</s>"},
                               {SpecialToken::kMask, "[MASK]"},    {SpecialToken::kMask, "<mask>"}};

}  // namespace

bool has_unigram_role(std::string_view text) {
  return std::any_of(std::begin(kNames), std::end(kNames), [text](const RoleName& one) { return one.text == text; });
}

std::optional<int32_t> UnigramTokenizer::special(SpecialToken role) const {
  if (role == SpecialToken::kUnknown) return definition_.unknown;
  for (const RoleName& name : kNames) {
    if (name.role != role) continue;
    for (const int32_t id : definition_.special) {
      if (definition_.tokens[static_cast<size_t>(id)] == name.text) return id;
    }
  }
  return std::nullopt;
}

bool UnigramTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (holds(definition_.special, id) || added_.find(id) != nullptr) return false;
  const std::string& token = definition_.tokens[static_cast<size_t>(id)];
  const auto first = static_cast<unsigned char>(token[0]);
  return !token.starts_with(kMetaspace) && (first >= 0x80 || std::isalnum(first) != 0);
}

std::optional<Vocabulary> UnigramTokenizer::vocabulary() const {
  Vocabulary vocabulary = vocabulary_of(definition_.tokens, definition_.special, definition_.added);
  vocabulary.scores = definition_.scores;
  vocabulary.tokens.at(static_cast<size_t>(definition_.unknown)).kind = TokenKind::kUnknown;
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    if (model_.byte_of(id) >= 0) vocabulary.tokens.at(static_cast<size_t>(id)).kind = TokenKind::kByte;
  }
  return vocabulary;
}

nlohmann::json UnigramTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  write_unigram(definition_, &object);
  return object;
}

std::unique_ptr<UnigramTokenizer> UnigramTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  return std::make_unique<UnigramTokenizer>(read_unigram(object, where), where);
}

}  // namespace headshare
