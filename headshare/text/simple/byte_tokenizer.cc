#include "headshare/text/simple/byte_tokenizer.h"

#include "headshare/base/json/json_input.h"
#include "headshare/text/interface/for_kinds.h"

namespace headshare {

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const int32_t id : ids) {
    check_token_id(id, vocabulary_size());
    text += static_cast<char>(id);
  }
  return text;
}

TokensWithSpans ByteTokenizer::encode_with_spans(std::string_view text) const {
  TokensWithSpans result = {encode(text), {}};
  for (size_t byte = 0; byte < text.size(); ++byte) result.spans.push_back({byte, byte + 1});
  return result;
}

bool ByteTokenizer::continues_word(int32_t) const { throw_words_unknown(*this); }

std::unique_ptr<ByteTokenizer> ByteTokenizer::from_json(const nlohmann::json& object, const std::string& where) {
  refuse_unknown_keys(object, {"format", "version", "kind"}, where);
  return std::make_unique<ByteTokenizer>();
}

nlohmann::json ByteTokenizer::to_json() const { return tokenizer_header(*this); }

}  // namespace headshare
