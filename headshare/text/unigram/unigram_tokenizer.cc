#include "headshare/text/unigram/unigram_tokenizer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/unigram/unigram_file.h"
#include "headshare/text/word_cache.h"

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

UnigramModel model_of(const UnigramDefinition& d) {
  UnigramModel::Options options{.tokens = &d.tokens,
                                .scores = &d.scores,
                                .never = std::vector<bool>(d.tokens.size()),
                                .unknown = d.unknown,
                                .byte_fallback = d.byte_fallback};
  for (const int32_t id : d.special) options.never[static_cast<size_t>(id)] = true;
  return UnigramModel(options);
}

// A word with U+2581 before it, and where its bytes come from.
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
  check_ids(d.verbatim, d.tokens.size(), "verbatim", where);
  check_ids(d.strips_left, d.tokens.size(), "stripping", where);
  HS_CHECK(holds(d.special, d.unknown), where, ": the id of unknown pieces, ", d.unknown, ", is not among the ",
           d.special.size(), " special ids");
  HS_CHECK(d.pair_separators == 1 || d.pair_separators == 2, where, ": ", d.pair_separators,
           " separators between the texts of a pair; there are 1 or 2");
  model_ = model_of(d);
  std::vector<std::pair<std::string_view, int32_t>> verbatim;
  for (const int32_t id : d.verbatim) verbatim.emplace_back(d.tokens[static_cast<size_t>(id)], id);
  verbatim_ = PieceTrie(std::move(verbatim));
  piecewise_ = works_piecewise(d.steps);
}

UnigramTokenizer::~UnigramTokenizer() = default;

void UnigramTokenizer::for_each_chunk(std::string_view text, const std::function<void(TextSpan)>& chunk,
                                      const Visit& verbatim) const {
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && !definition_.verbatim.empty();) {
    size_t bytes = 0;
    int32_t id = 0;
    verbatim_.for_each_prefix(text.substr(at), [&](size_t length, int32_t number) {  // the last is the longest
      bytes = length;
      id = number;
    });
    if (bytes == 0) {
      ++at;
      continue;
    }
    chunk({begin, at});
    verbatim(id, {at, at + bytes});
    begin = at += bytes;
  }
  chunk({begin, text.size()});
}

size_t UnigramTokenizer::next_piece(std::string_view rest) const {
  return piecewise_ ? piece_bytes(rest, definition_.splits_at_white ? " \n\t" : " ") : rest.size();
}

void UnigramTokenizer::encode_piece(std::string_view piece, size_t offset, bool first, const Visit& visit) const {
  const NormalText characters = normalised(piece, definition_.steps, where_);
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

void UnigramTokenizer::encode_chunk(std::string_view chunk, Worker* worker, std::vector<int32_t>* ids) const {
  const auto append = [ids](int32_t id, TextSpan) { ids->push_back(id); };
  for (size_t begin = 0, bytes = 0; begin < chunk.size(); begin += bytes) {
    bytes = next_piece(chunk.substr(begin));
    const std::string_view piece = chunk.substr(begin, bytes);
    // The same piece is cut in another way where it begins a chunk, unless white space parts all words.
    const bool cached = definition_.splits_at_white || begin > 0;
    const std::span<const int32_t> known = cached ? worker->cache.find(piece) : std::span<const int32_t>();
    if (!known.empty()) {
      ids->insert(ids->end(), known.begin(), known.end());
      continue;
    }
    const size_t before = ids->size();
    encode_piece(piece, begin, begin == 0, append);
    if (cached && ids->size() > before) worker->cache.insert(piece, std::span(*ids).subspan(before));
  }
}

std::vector<int32_t> UnigramTokenizer::encode(std::string_view text) const {
  check_utf8(text, "tokenizer 'unigram'");
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  workers_.run(
      [] { return std::make_unique<Worker>(); },
      [&](Worker& worker) {
        for_each_chunk(
            text,
            [&](TextSpan chunk) { encode_chunk(text.substr(chunk.begin, chunk.end - chunk.begin), &worker, &ids); },
            [&](int32_t id, TextSpan) { ids.push_back(id); });
      });
  return ids;
}

TokensWithSpans UnigramTokenizer::encode_with_spans(std::string_view text) const {
  check_utf8(text, "tokenizer 'unigram'");
  TokensWithSpans result;
  const auto append = [&](int32_t id, TextSpan span) {
    result.ids.push_back(id);
    result.spans.push_back(span);
  };
  for_each_chunk(
      text,
      [&](TextSpan chunk) {
        for (size_t begin = chunk.begin, bytes = 0; begin < chunk.end; begin += bytes) {
          const std::string_view rest = text.substr(begin, chunk.end - begin);
          bytes = next_piece(rest);
          encode_piece(rest.substr(0, bytes), begin, begin == chunk.begin, append);
        }
      },
      append);
  return result;
}

namespace {

// The text of bytes that need not be UTF-8.
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

std::optional<int32_t> UnigramTokenizer::special(SpecialToken role) const {
  struct Name {
    SpecialToken role;
    std::string_view text;
  };
  static constexpr Name kNames[] = {{SpecialToken::kPadding, "<pad>"},  {SpecialToken::kPadding, "[PAD]"},
                                    {SpecialToken::kClassify, "[CLS]"}, {SpecialToken::kClassify, "<s>"},
                                    {SpecialToken::kSeparate, "[SEP]"}, {SpecialToken::kSeparate, "</s>"},
                                    {SpecialToken::kMask, "[MASK]"},    {SpecialToken::kMask, "<mask>"}};
  if (role == SpecialToken::kUnknown) return definition_.unknown;
  for (const Name& name : kNames) {
    if (name.role != role) continue;
    for (const int32_t id : definition_.special) {
      if (definition_.tokens[static_cast<size_t>(id)] == name.text) return id;
    }
  }
  return std::nullopt;
}

bool UnigramTokenizer::strips_left(int32_t id) const { return holds(definition_.strips_left, id); }

bool UnigramTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (holds(definition_.special, id) || holds(definition_.verbatim, id)) return false;
  const std::string& token = definition_.tokens[static_cast<size_t>(id)];
  const auto first = static_cast<unsigned char>(token[0]);
  return !token.starts_with(kMetaspace) && (first >= 0x80 || std::isalnum(first) != 0);
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
