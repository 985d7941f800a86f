// For tests only: this header makes small language models on small texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/tasks/language/language_model.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {

// Returns sentences that differ, `bytes` bytes of them.
inline std::string sentences(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) {
    text += "Line " + std::to_string(i * i % 97) + " of a small text, \xC3\xA4 and so on.\n";
  }
  return text.substr(0, bytes);
}

inline TokenData byte_tokens(const std::string& text) {
  return TokenData::from_memory(ByteTokenizer().encode(text), text.size());
}

// Returns options of 1 layer, width 16, 2 heads, context 8.
inline LanguageModelOptions small_language(const std::string& scheme = "mha") {
  LanguageModelOptions options;
  options.model = {.context = 8, .layers = 1};
  options.model.attention = {.scheme = scheme, .d_model = 16, .heads = 2};
  options.batch_size = 3;
  options.tokenizer.kind = TokenizerKind::kBytes;
  return options;
}

// Makes a data set of bytes, cut as --validation-fraction 0.2 --test-fraction 0.1 would.
inline LanguageData small_data(size_t bytes = 1000) {
  LanguageData data{.tokenizer = std::make_shared<ByteTokenizer>(), .splits = {}};
  data.splits = split_tokens(byte_tokens(sentences(bytes)), 0.2, 0.1, *data.tokenizer);
  return data;
}

// Makes a tokenizer of [PAD] [UNK] [CLS] [SEP] [MASK] and six more tokens, of which two go on with a word.
inline std::shared_ptr<Tokenizer> small_wordpiece() {
  return std::make_shared<WordPieceTokenizer>(WordPieceDefinition{
      .tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "fox", "dogs", "the", "##es", "##ing"},
      .special = {0, 1, 2, 3, 4},
      .unknown = 1,
      .normalization = {}});
}

}  // namespace headshare
