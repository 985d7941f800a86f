// For tests only, this makes small tokenizers, hard texts, damaged files.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/text/train_tokenizer.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {

inline std::unique_ptr<Tokenizer> train_on(const TokenizerOptions& options, const std::vector<std::string>& chunks) {
  size_t next = 0;
  return train_tokenizer(options, [&](std::string* chunk) {
    if (next == chunks.size()) return false;
    *chunk = chunks[next++];
    return true;
  });
}

// Returns what each id of `text` stands for, as it is spelled there.
inline std::vector<std::string> spelled(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> result;
  for (const TextSpan& span : tokenizer.encode_with_spans(text).spans) {
    result.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return result;
}

inline std::string all_bytes() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  return text;
}

// Returns a text of up to 60 pieces: letters, spaces, contractions, any code points, and stray bytes.
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

// Changes files of JSON and tables for fuzzing: replaces, removes, repeats or swaps a few bytes or whole spans.
inline std::string mutate(std::string text, Philox* random) {
  static const std::string kBytes = "\"\\{}[],:0123456789-eE.\x00\xFF\xC3 naul";
  for (uint64_t changes = 1 + random->below(3); changes > 0 && !text.empty(); --changes) {
    const size_t at = random->below(text.size());
    const size_t length = 1 + random->below(std::min<size_t>(text.size() - at, 40));
    switch (random->below(6)) {
      case 0:
        text[at] = kBytes[random->below(kBytes.size())];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random->below(text.size()), length));
        break;
      case 3:
        text[at] = static_cast<char>(text[at] ^ (1 << random->below(8)));
        break;
      case 4:
        text[at] = "0123456789abc"[random->below(13)];
        break;
      default:
        if (random->below(10) == 0) text.resize(at);
    }
  }
  return text;
}

}  // namespace headshare
