// Cuts text as HashFormers does: lower-cased words and runs of signs.
#pragma once

#include <string>
#include <string_view>

#include "headshare/text/unicode/text_span.h"

namespace headshare {

// Does what Python's re.finditer(r"\w+|[^\w\s]+", text.lower()) does, one token at a time. A span is the bytes of
// `text` whose lower case the token is made of, whole characters: the two tokens of "İ" ("i" and a combining dot) share
// its span.
class WordsAndSymbols {
 public:
  // Throws Error led by `where` and naming the byte offset on invalid UTF-8. `text` must outlive the object.
  WordsAndSymbols(std::string_view text, const std::string& where);

  // Moves to the next token; returns false at the end. word() and span() are valid until the next call.
  bool next();

  std::string_view word() const { return word_; }
  TextSpan span() const { return span_; }

 private:
  enum class Class : unsigned char { kSpace, kWord, kSymbol };

  static Class class_of(int32_t code_point);
  void read_character();

  std::string_view text_;
  size_t position_ = 0;  // behind the character last read
  size_t begin_ = 0;     // of that character
  std::string lower_;    // its lower case
  size_t lower_at_ = 0;  // of the part of lower_ that is not in a token yet
  std::string word_;
  TextSpan span_;
};

}  // namespace headshare
