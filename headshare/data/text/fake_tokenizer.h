// For this folder's tests only: a tokenizer with GPT-2's rule for white space, lossless, with an
// end-of-text token, whose ids show where a text was cut.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// Every byte b of a word becomes id 2 b when a word begins there, else 2 b + 1; 512 ends a text. A
// word is one optional space and then a run of other characters, or a run of white space up to its
// last character, as the GPT-2 pattern has it: the ids around white space depend on both sides.
class FakeTokenizer : public Tokenizer {
 public:
  explicit FakeTokenizer(int64_t vocabulary_size = 513) : vocabulary_size_(vocabulary_size) {}

  std::string kind() const override { return "fake"; }
  int64_t vocabulary_size() const override { return vocabulary_size_; }
  std::optional<int32_t> special(SpecialToken role) const override {
    return role == SpecialToken::kEndOfText ? std::optional(512) : std::nullopt;
  }
  bool continues_word(int32_t id) const override { return id % 2 == 1; }
  bool lossless() const override { return true; }
  nlohmann::json to_json() const override { return {{"kind", "fake"}, {"size", vocabulary_size_}}; }

  std::vector<int32_t> encode(std::string_view text) const override {
    ++encodings;
    std::vector<int32_t> ids;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin);
      for (size_t i = begin; i < end; ++i) ids.push_back(2 * static_cast<uint8_t>(text[i]) + (i > begin ? 1 : 0));
      begin = end;
    }
    return ids;
  }

  TokensWithSpans encode_with_spans(std::string_view text) const override {
    TokensWithSpans result = {encode(text), {}};
    for (size_t byte = 0; byte < text.size(); ++byte) result.spans.push_back({byte, byte + 1});
    return result;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += id == 512 ? std::string("<end>") : std::string(1, static_cast<char>(id / 2));
    return text;
  }

  mutable int64_t encodings = 0;

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  static size_t word_end(std::string_view text, size_t begin) {
    size_t end = begin;
    while (end < text.size() && is_space(text[end])) ++end;
    const size_t spaces = end - begin;
    if (end == text.size() && spaces > 0) return end;
    if (spaces > 1) return end - 1;
    if (spaces == 1 && text[begin] != ' ') return end;
    while (end < text.size() && !is_space(text[end])) ++end;
    return end;
  }

  int64_t vocabulary_size_;
};

// Accepts every byte string, as "bytes" of headshare/text does.
class FakeByteTokenizer : public FakeTokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  std::optional<int32_t> special(SpecialToken) const override { return std::nullopt; }
};

// This tokenizer is lossy: one id per 10 bytes, and no way back.
class LossyTokenizer : public FakeTokenizer {
 public:
  bool lossless() const override { return false; }
  std::vector<int32_t> encode(std::string_view text) const override {
    return std::vector<int32_t>((text.size() + 9) / 10, 7);
  }
  std::string decode(std::span<const int32_t>) const override { return "?"; }
};

}  // namespace headshare
