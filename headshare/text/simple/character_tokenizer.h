// Tokenizer "characters" has one id per Unicode code point that occurs in the training text.
#pragma once

#include <unordered_map>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// Ids follow the order of the code points, as in nanoGPT's character models (tiny shakespeare: 65).
//
// A character outside the vocabulary is an Error naming it, unless the tokenizer was made with an
// unknown token: then it becomes that token, which is the last id and decodes to U+FFFD. Invalid
// UTF-8 is an Error naming the byte offset, always. Nothing is normalised.
class CharacterTokenizer : public Tokenizer {
 public:
  struct Options {
    bool unknown_token = false;
  };

  // `characters` are strictly ascending code points, 0 .. 0x10FFFF without surrogates, at least one. Throws Error led
  // by `where` otherwise.
  CharacterTokenizer(std::vector<int32_t> characters, Options options, const std::string& where);

  // Reads what to_json wrote.
  static std::unique_ptr<CharacterTokenizer> from_json(const nlohmann::json& object, const std::string& where);

  std::string kind() const override { return "characters"; }
  int64_t vocabulary_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::optional<int32_t> special(SpecialToken role) const override;
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return false; }
  nlohmann::json to_json() const override;

  const std::vector<int32_t>& characters() const { return characters_; }

 private:
  int32_t id_of(int32_t code_point, size_t byte) const;

  std::vector<int32_t> characters_;  // by id
  std::unordered_map<int32_t, int32_t> ids_;
  Options options_;
};

}  // namespace headshare
