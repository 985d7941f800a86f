#include "headshare/base/strings/visible.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace headshare {
namespace {

// Returns how many bytes the character at the start of `text` has, by its lead byte; 0 where the bytes behind it do not
// belong to it.
size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text.front());
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0;
}

// Appends the number of a byte, by `format`. The last byte names a character: U+009B is C2 9B.
void append_number(const char* format, char byte, std::string* out) {
  char number[8];
  std::snprintf(number, sizeof number, format, static_cast<unsigned>(static_cast<uint8_t>(byte)));
  *out += number;
}

// Hands characters to `add`, and bytes that are none to `add_byte`.
template <class Add, class AddByte>
void for_each_character(std::string_view text, const Add& add, const AddByte& add_byte) {
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0) {
      add_byte(text.front());
    } else {
      add(text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
}

std::string written_out(std::string_view text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  const auto add_byte = [&](char byte) { append_number("\\x%02x", byte, &out); };
  const auto add = [&](std::string_view character) {
    const char c = character.front();
    if (!is_control(character) || (!one_line && (c == '\n' || c == '\t'))) {
      out += character;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      add_byte(character.back());
    }
  };
  for_each_character(text, add, add_byte);
  return out;
}

}  // namespace

std::string visible(std::string_view text) { return written_out(text, /*one_line=*/false); }

std::string visible_line(std::string_view text) { return written_out(text, /*one_line=*/true); }

std::string printable(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return visible(text);
}

std::string abbreviated(const std::string& text, size_t most) {
  std::string made = printable(text);
  size_t characters = 0;
  size_t cut = 0;  // where the last character that may stay ends
  for (size_t at = 0; at < made.size(); ++at) {
    if ((made[at] & 0xC0) == 0x80) continue;
    if (++characters == most) cut = at;
  }
  return characters <= most ? made : made.substr(0, cut) + "…";
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto within = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; };
  size_t head = most / 5 * 4;
  size_t tail = text.size() - (most - head);
  while (head > 0 && within(head)) --head;
  while (tail < text.size() && within(tail)) ++tail;
  std::string out(text.substr(0, head));
  out += " ...(" + std::to_string(tail - head) + " bytes)... ";
  return out += text.substr(tail);
}

std::string message_line(std::string_view message) {
  constexpr size_t kLongestWord = 500;
  constexpr size_t kLongestMessage = 4000;
  const std::string line = visible_line(message);
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size() - 1) + 1;
    out += shortened(std::string_view(line).substr(at, end - at), kLongestWord);
    at = end;
  }
  return shortened(out, kLongestMessage);
}

std::string visible_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  const auto add_byte = [&](char byte) { out += byte; };  // what wrote the JSON has replaced them
  const auto add = [&](std::string_view character) {
    const bool layout =
        character.size() == 1 && character[0] != '\x7F';  // what is below 0x20 can only stand between values
    if (layout || !is_control(character)) {
      out += character;
    } else {
      append_number("\\u00%02x", character.back(), &out);
    }
  };
  for_each_character(json, add, add_byte);
  return out;
}

}  // namespace headshare
