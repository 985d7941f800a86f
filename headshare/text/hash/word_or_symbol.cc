#include "headshare/text/hash/word_or_symbol.h"

#include "headshare/text/unicode/lower_case.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {

WordsAndSymbols::WordsAndSymbols(std::string_view text, const std::string& where) : text_(text) {
  check_utf8(text, where);
}

WordsAndSymbols::Class WordsAndSymbols::class_of(int32_t code_point) {
  if (code_point < 0x80) {
    const bool letter = (code_point >= 'a' && code_point <= 'z') || (code_point >= 'A' && code_point <= 'Z');
    if (letter || (code_point >= '0' && code_point <= '9') || code_point == '_') return Class::kWord;
    return is_white_space(code_point) ? Class::kSpace : Class::kSymbol;
  }
  if (is_word_character(code_point)) return Class::kWord;
  return is_white_space(code_point) ? Class::kSpace : Class::kSymbol;
}

void WordsAndSymbols::read_character() {
  begin_ = position_;
  lower_.clear();
  lower_at_ = 0;
  const int32_t code_point = next_code_point(text_, &position_);
  append_lower_case(text_, begin_, code_point, position_, &lower_);
}

bool WordsAndSymbols::next() {
  word_.clear();
  Class kind = Class::kSpace;
  for (;;) {
    if (lower_at_ == lower_.size()) {
      if (position_ == text_.size()) break;
      read_character();
    }
    size_t end = lower_at_;
    const Class found = class_of(next_code_point(lower_, &end));
    if (found != kind && kind != Class::kSpace) break;  // stays for the next token
    if (found != Class::kSpace) {
      if (kind == Class::kSpace) span_.begin = begin_;
      kind = found;
      word_.append(lower_, lower_at_, end - lower_at_);
      span_.end = position_;
    }
    lower_at_ = end;
  }
  return !word_.empty();
}

}  // namespace headshare
