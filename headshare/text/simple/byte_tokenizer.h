// Tokenizer "bytes" takes the bytes themselves as ids.
#pragma once

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// It has 256 ids, nothing to train, no special tokens. Any byte string survives encode and decode, invalid UTF-8
// included.
class ByteTokenizer : public Tokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  int64_t vocabulary_size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  TokensWithSpans encode_with_spans(std::string_view text) const override;
  std::optional<int32_t> special(SpecialToken) const override { return std::nullopt; }
  bool continues_word(int32_t id) const override;
  bool lossless() const override { return true; }

  // Reads what to_json wrote.
  static std::unique_ptr<ByteTokenizer> from_json(const nlohmann::json& object, const std::string& where);
  nlohmann::json to_json() const override;
};

}  // namespace headshare
