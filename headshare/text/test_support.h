// For this folder's tests only: small tokenizers and hard texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/text/train_tokenizer.h"
#include "headshare/text/utf8.h"

namespace headshare {

inline std::unique_ptr<Tokenizer> train_on(const TokenizerOptions& options, const std::vector<std::string>& chunks) {
  size_t next = 0;
  return train_tokenizer(options, [&](std::string* chunk) {
    if (next == chunks.size()) return false;
    *chunk = chunks[next++];
    return true;
  });
}

inline std::string all_bytes() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  return text;
}

// A text of up to 60 pieces: letters, spaces, contractions, any code points, and stray bytes.
inline std::string random_text(Philox* random) {
  static const std::vector<std::string> kPieces = {" ",      "  ",   "\n",  "'s",   "'re",  "don't",
                                                   "the",    " The", "123", "é",    "日本", "\u00A0",
                                                   "\u180E", "😀",    "!?",  "\xC3", "\xFF", "\x80"};
  std::string text;
  for (uint64_t pieces = random->below(60); pieces > 0; --pieces) {
    const uint64_t choice = random->below(kPieces.size() + 4);
    if (choice < kPieces.size()) {
      text += kPieces[choice];
    } else if (choice == kPieces.size()) {
      text += static_cast<char>(random->below(256));
    } else {
      append_utf8(static_cast<int32_t>(random->below(0xD800)), &text);
    }
  }
  return text;
}

}  // namespace headshare
