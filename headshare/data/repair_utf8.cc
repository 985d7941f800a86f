#include "headshare/data/repair_utf8.h"

#include <cstdint>

#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

// Counts the bytes of the ill-formed text's first maximal subpart: the bytes that could still have become a character,
// or one byte.
size_t subpart_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range is narrower after four leads: no overlong forms, no surrogates, no more than U+10FFFF.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  size_t bytes = 1;
  while (bytes < length && bytes < text.size() && byte(bytes) >= low && byte(bytes) <= high) {
    ++bytes;
    low = 0x80;
    high = 0xBF;
  }
  return bytes;
}

}  // namespace

std::string replace_invalid_utf8(std::string_view text) {
  std::string clean;
  while (true) {
    const size_t valid = valid_utf8_prefix(text);
    clean.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return clean;
    clean.append("\xEF\xBF\xBD");
    text.remove_prefix(subpart_bytes(text));
  }
}

size_t character_boundary(std::string_view text, size_t most) {
  if (most >= text.size()) return text.size();
  for (size_t back = 0; back < 4 && back < most; ++back) {
    if ((static_cast<uint8_t>(text[most - back]) & 0xC0) != 0x80) return most - back;
  }
  return most;
}

}  // namespace headshare
