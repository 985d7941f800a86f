// Tokenizers "hash-md" and "hash-lsh" cut text into words and symbols without a vocabulary (HashFormers).
#pragma once

#include <array>

#include "headshare/text/hash/word_hasher.h"
#include "headshare/text/hash/word_table.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// Text is cut as in word_or_symbol.h. Ids 0 .. 4 are <s>, padding, </s>, unknown and mask (HashFormers' order); an id
// from 5 on is 5 + the number of its word in the table of this tokenizer, so ids are those of one run: what is saved
// keeps the words beside them. vocabulary_size() counts the words seen so far. decode joins words, lower-cased, with
// one space. Invalid UTF-8 is an Error naming the byte offset. Thread-safe.
class HashTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kSpecials = 5;
  static constexpr std::array<const char*, kSpecials> kSpecialTexts = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};

  explicit HashTokenizer(std::shared_ptr<const WordHasher> hasher);

  // Reads what to_json wrote.
  static std::unique_ptr<HashTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "hash-" + hasher_->name(); }
  int64_t vocabulary_size() const override { return kSpecials + table_.size(); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  int64_t pair_separators() const override { return 2; }
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  WordTable* words() const override { return &table_; }
  nlohmann::json to_json() const override;

  const WordHasher& hasher() const { return *hasher_; }

  // Returns the same tokenizer with an empty table, for texts without an end.
  std::unique_ptr<HashTokenizer> renewed() const { return std::make_unique<HashTokenizer>(hasher_); }

 private:
  std::shared_ptr<const WordHasher> hasher_;
  mutable WordTable table_;
};

}  // namespace headshare
