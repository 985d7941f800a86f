#include "headshare/data/text/text_cut.h"

#include <cstdint>

namespace headshare {
namespace {

// Tells whether the character that begins at `at` is white space (Unicode property White_Space) or a control character;
// also when it is cut off by the end of the text, for then it could be.
bool may_be_space(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return byte <= 0x20 || byte == 0x7F;
  if (byte != 0xC2 && (byte < 0xE1 || byte > 0xE3)) return false;
  const std::string_view two = text.substr(at, 2);
  if (byte == 0xC2) return two.size() < 2 || two == "\xC2\x85" || two == "\xC2\xA0";
  const std::string_view three = text.substr(at, 3);
  if (three.size() < 3 || three == "\xE1\x9A\x80" || three == "\xE2\x81\x9F" || three == "\xE3\x80\x80") return true;
  const auto last = static_cast<uint8_t>(three[2]);
  return two == "\xE2\x80" && (last <= 0x8A || last == 0xA8 || last == 0xA9 || last == 0xAF);
}

// Tells the same for the character that ends before `end`. The start of the text counts as white space: what stands
// before it is not known.
bool may_be_space_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && end - begin < 4) {
    --begin;
    if ((static_cast<uint8_t>(text[begin]) & 0xC0) != 0x80) return may_be_space(text.substr(0, end), begin);
  }
  return true;
}

}  // namespace

size_t last_safe_cut(std::string_view text) {
  size_t line = 0;
  for (size_t at = text.size() < 2 ? 0 : text.size() - 2; at > 0; --at) {
    const char c = text[at];
    if ((c != ' ' && (c != '\n' || line != 0)) || may_be_space(text, at + 1) || may_be_space_before(text, at)) continue;
    if (c == ' ') return at;
    line = at + 1;
  }
  return line;
}

}  // namespace headshare
