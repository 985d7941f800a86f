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

namespace headshare {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // "bytes", "characters", "words" or "bpe".
  virtual std::string kind() const = 0;

  // Ids run from 0 to vocabulary_size() - 1.
  virtual int64_t vocabulary_size() const = 0;

  // The ids of `text` (UTF-8; what happens to invalid UTF-8 is each kind's stated policy).
  // Special tokens are never produced from text.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  // The text of `ids`. Throws Error for an id outside the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  // The token that ends a document, when the vocabulary has one.
  virtual std::optional<int32_t> end_of_text() const = 0;

  // True when decode(encode(text)) == text for every byte string: only then are bits per byte
  // meaningful.
  virtual bool lossless() const = 0;

  // The whole tokenizer as JSON, with a format version: what `tokenizer.json` in a checkpoint holds.
  virtual nlohmann::json to_json() const = 0;
};

}  // namespace headshare
