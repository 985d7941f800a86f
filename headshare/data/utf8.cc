#include "headshare/data/utf8.h"

#include <cstdint>
#include <cstring>

namespace headshare {
namespace {

// What stands at a position of a text.
struct Sequence {
  size_t bytes;  // of the character, or of the maximal ill-formed subpart
  bool valid;
};

Sequence sequence_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range is narrower after four leads: no overlong forms, no surrogates, no more than U+10FFFF.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

bool eight_ascii(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return (word & 0x8080808080808080ULL) == 0;
}

std::optional<size_t> find_invalid_from(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (at + 8 <= text.size() && eight_ascii(text.data() + at)) {
      at += 8;
      continue;
    }
    const Sequence next = sequence_at(text, at);
    if (!next.valid) return at;
    at += next.bytes;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) { return find_invalid_from(text, 0); }

std::string replace_invalid_utf8(std::string_view text) {
  std::string clean;
  size_t at = 0;
  while (const std::optional<size_t> invalid = find_invalid_from(text, at)) {
    clean.append(text.substr(at, *invalid - at));
    clean.append("\xEF\xBF\xBD");
    at = *invalid + sequence_at(text, *invalid).bytes;
  }
  return clean.append(text.substr(at));
}

size_t character_boundary(std::string_view text, size_t most) {
  if (most >= text.size()) return text.size();
  for (size_t back = 0; back < 4 && back < most; ++back) {
    if ((static_cast<uint8_t>(text[most - back]) & 0xC0) != 0x80) return most - back;
  }
  return most;
}

}  // namespace headshare
