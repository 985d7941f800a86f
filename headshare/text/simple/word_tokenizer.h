// Tokenizer "words" follows the convention of the WikiText word-level language models.
#pragma once

#include <unordered_map>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// Tells whether Python's str.split() splits here (at the Unicode white space and U+001C .. U+001F).
bool is_word_space(int32_t code_point);

// Words are what stands between white space; every '\n' becomes the token <eos>, and a word outside
// the vocabulary becomes <unk>. WikiText-2's training text gives 33,278 types this way.
//
// Id 0 is <unk>, id 1 is <eos>. The text "<unk>" is <unk> (WikiText's own convention); the text
// "<eos>" is an unknown word, for special tokens are not produced from text. <eos> ends a line, not
// a document, so it has no role. decode joins words with one space and writes <eos> as
// '\n': white space is normalised, case and punctuation are kept. Invalid UTF-8 is an Error naming
// the byte offset.
class WordTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kUnknown = 0;
  static constexpr int32_t kEndOfLine = 1;
  static constexpr std::string_view kUnknownText = "<unk>";
  static constexpr std::string_view kEndOfLineText = "<eos>";

  // `words` are the texts by id, distinct, without white space, beginning with <unk> and <eos>. Throws Error led by
  // `where` otherwise.
  WordTokenizer(std::vector<std::string> words, const std::string& where);

  WordTokenizer(const WordTokenizer&) = delete;  // ids_ points into words_
  WordTokenizer& operator=(const WordTokenizer&) = delete;

  // Reads what to_json wrote.
  static std::unique_ptr<WordTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "words"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(words_.size()); }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  nlohmann::json to_json() const override;

 private:
  int32_t id_of(std::string_view word) const;  // or of "\n"

  std::vector<std::string> words_;                     // by id
  std::unordered_map<std::string_view, int32_t> ids_;  // views into words_; without <eos>
};

// Calls visit(word) for each word and visit of the "\n" at each line end, in order; views into `text`. Throws Error
// naming the byte offset on invalid UTF-8.
void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit);

}  // namespace headshare
