// A tokenizer turns text into ids and back. Every kind implements this interface; tokenizers that
// can be trained are made by `train_tokenizer`, all are read back by `load_tokenizer`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/interface/vocabulary.h"
#include "headshare/text/unicode/text_span.h"

namespace headshare {

// This says what a special token is for.
enum class SpecialToken { kPadding, kUnknown, kClassify, kSeparate, kMask, kEndOfText, kBeginOfText };

// Returns the role's name in messages and files: "padding", "unknown", "classify", "separate", "mask", "end of text",
// "begin of text".
std::string_view role_name(SpecialToken role);

// Token ids and, for each, the bytes of the text that it stands for.
struct TokensWithSpans {
  std::vector<int32_t> ids;
  std::vector<TextSpan> spans;  // as many as ids; the begins ascend, and so do the ends
};

class WordTable;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Returns "bytes", "characters", "words", "bpe", "character-bpe", "wordpiece", "unigram", "sentencepiece",
  // "hash-md" or "hash-lsh".
  virtual std::string kind() const = 0;

  // Ids run from 0 to vocabulary_size() - 1.
  virtual int64_t vocabulary_size() const = 0;

  // Returns the ids of `text` (UTF-8; what happens to invalid UTF-8 is each kind's stated policy). Special tokens that
  // have a role are never produced from text; other tokens that were added to the vocabulary are found in it
  // (text/added).
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  // Returns the ids of a text in which the special tokens' own texts ("[MASK]") stand for them. What stands between
  // them is a text of its own, as in Hugging Face tokenizers.
  virtual std::vector<int32_t> encode_with_special(std::string_view text) const;

  // Returns the ids of encode(text) and where each stands in `text`. A span holds whole characters of the text, or for
  // byte-level kinds the token's bytes; tokens made from one character share its span.
  virtual TokensWithSpans encode_with_spans(std::string_view text) const = 0;

  // Returns the text of `ids`. Throws Error for an id outside the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  // Returns how the vocabulary spells a token, for people to read: "##ing", "▁the". Throws Error as decode does.
  virtual std::string spelling(int32_t id) const { return decode({&id, 1}); }

  // Returns the token of this role, when the vocabulary has one. kEndOfText ends a document.
  virtual std::optional<int32_t> special(SpecialToken role) const = 0;

  // Returns how many separators stand between the two texts of a pair: [CLS] A [SEP] B [SEP] has 1, RoBERTa's <s> A
  // </s></s> B </s> has 2.
  virtual int64_t pair_separators() const { return 1; }

  // Returns the token that stands before every text that a decoder reads, where it was trained so: Llama's <s>.
  // encode() does not put it there. Nothing for tokenizers whose files do not say so.
  virtual std::optional<int32_t> begins_texts() const { return {}; }

  // Tells whether this token goes on with the word that the token before it belongs to, where words are what masking
  // and the reader take for one: "##ing", not "ing", "," or a special token. A text's first token begins a word
  // whatever this says. Throws Error for kinds whose ids do not tell (bytes, characters) and for an id outside the
  // vocabulary.
  virtual bool continues_word(int32_t id) const = 0;

  // Tells whether decode(encode(text)) == text for every byte string: only then are bits per byte meaningful.
  virtual bool lossless() const = 0;

  // Kinds without a vocabulary number words as they see them, in this table; nullptr for every other kind. The table is
  // no part of to_json: tokenizers with the same settings are equal, whatever they have seen.
  virtual WordTable* words() const { return nullptr; }

  // Returns the vocabulary as values; nothing for kinds that number words as they see them.
  virtual std::optional<Vocabulary> vocabulary() const;

  // Returns the whole tokenizer as JSON, with a format version: what `tokenizer.json` in a checkpoint holds.
  virtual nlohmann::json to_json() const = 0;

 protected:
  // Returns a vocabulary of these tokens. Those of `special_ids`, of `added`, and those with roles are no ordinary
  // ones.
  Vocabulary vocabulary_of(const std::vector<std::string>& tokens, const std::vector<int32_t>& special_ids,
                           const std::vector<AddedToken>& added) const;
};

// Returns the token of this role; throws Error led by `where`, which names the file or what needs the token, when the
// vocabulary has none.
int32_t require_special(const Tokenizer& tokenizer, SpecialToken role, const std::string& where);

// The list has every role.
inline constexpr SpecialToken kRoles[] = {SpecialToken::kPadding,  SpecialToken::kUnknown, SpecialToken::kClassify,
                                          SpecialToken::kSeparate, SpecialToken::kMask,    SpecialToken::kBeginOfText,
                                          SpecialToken::kEndOfText};

}  // namespace headshare
