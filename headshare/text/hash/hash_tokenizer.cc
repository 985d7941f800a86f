#include "headshare/text/hash/hash_tokenizer.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hash/word_or_symbol.h"
#include "headshare/text/interface/for_kinds.h"

namespace headshare {
namespace {

// Collects words on their way into the table, so that its lock is taken once for many.
class Batch {
 public:
  Batch(WordTable* table, std::vector<int32_t>* ids) : table_(table), ids_(ids) {}

  void add(std::string_view word) {
    constexpr size_t kEnough = 1 << 14;  // bytes
    text_ += word;
    ends_.push_back(text_.size());
    if (text_.size() >= kEnough) flush();
  }

  void flush() {
    std::vector<std::string_view> words;
    words.reserve(ends_.size());
    size_t begin = 0;
    for (const size_t end : ends_) {
      words.push_back(std::string_view(text_).substr(begin, end - begin));
      begin = end;
    }
    const size_t first = ids_->size();
    table_->numbers(words, ids_);
    for (size_t i = first; i < ids_->size(); ++i) (*ids_)[i] += HashTokenizer::kSpecials;
    text_.clear();
    ends_.clear();
  }

 private:
  WordTable* table_;
  std::vector<int32_t>* ids_;
  std::string text_;
  std::vector<size_t> ends_;
};

std::shared_ptr<const WordFeatures> features_from_json(const nlohmann::json& object, const std::string& where) {
  const std::string& name = json_string(object, "features", where);
  if (name == "affix") {
    refuse_unknown_keys(object, {"format", "version", "kind", "features"}, where);
    return make_affix_features();
  }
  HS_CHECK(name == "bpe", where, ": unknown features ", brief_text(name), did_you_mean(name, {"affix", "bpe"}));
  refuse_unknown_keys(object, {"format", "version", "kind", "features", "bpe"}, where);
  const nlohmann::json& bpe = json_member(object, "bpe", where);
  const std::string inner = where + ": bpe";
  HS_CHECK(json_string(bpe, "kind", inner) == "bpe", inner, ": not a tokenizer of kind 'bpe'");
  return make_bpe_features(*BpeTokenizer::from_json(bpe, inner));
}

}  // namespace

HashTokenizer::HashTokenizer(std::shared_ptr<const WordHasher> hasher) : hasher_(std::move(hasher)), table_(*hasher_) {}

std::vector<int32_t> HashTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  Batch batch(&table_, &ids);
  for (WordsAndSymbols tokens(text, "tokenizer '" + kind() + "'"); tokens.next();) batch.add(tokens.word());
  batch.flush();
  return ids;
}

TokensWithSpans HashTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result;
  Batch batch(&table_, &result.ids);
  for (WordsAndSymbols tokens(text, "tokenizer '" + kind() + "'"); tokens.next();) {
    batch.add(tokens.word());
    result.spans.push_back(tokens.span());
  }
  batch.flush();
  return result;
}

std::string HashTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    if (!text.empty()) text += ' ';
    text += id < kSpecials ? kSpecialTexts[static_cast<size_t>(id)] : table_.word(id - kSpecials);
  }
  return text;
}

std::optional<int32_t> HashTokenizer::special(SpecialToken role) const {
  switch (role) {
    case SpecialToken::kClassify:
      return 0;
    case SpecialToken::kPadding:
      return 1;
    case SpecialToken::kSeparate:
      return 2;
    case SpecialToken::kUnknown:
      return 3;
    case SpecialToken::kMask:
      return 4;
    case SpecialToken::kEndOfText:
    case SpecialToken::kBeginOfText:
      return std::nullopt;
  }
  return std::nullopt;
}

bool HashTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return false;
}

nlohmann::json HashTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  object.update(hasher_->settings());
  return object;
}

std::unique_ptr<HashTokenizer> HashTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  if (json_string(object, "kind", where) == "hash-md") {
    refuse_unknown_keys(object, {"format", "version", "kind"}, where);
    return std::make_unique<HashTokenizer>(make_md_hasher());
  }
  return std::make_unique<HashTokenizer>(make_lsh_hasher(features_from_json(object, where)));
}

}  // namespace headshare
