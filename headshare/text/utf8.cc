#include "headshare/text/utf8.h"

#include <utf8proc.h>

#include <cstdio>
#include <cstring>

#include "headshare/base/error.h"

namespace headshare {

size_t valid_utf8_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    // Most text is mostly ASCII: eight bytes at a time.
    uint64_t eight = 0;
    while (position + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + position, sizeof eight);
      if ((eight & 0x8080808080808080ULL) != 0) break;
      position += sizeof eight;
    }
    if (position < text.size() && next_code_point(text, &position) < 0) break;
  }
  return position;
}

int32_t next_code_point(std::string_view text, size_t* position) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + *position;
  if (*bytes < 0x80) {
    ++*position;
    return *bytes;
  }
  utf8proc_int32_t code_point = -1;
  // Four bytes are the longest code point; the length is signed, so it must not be the whole rest.
  const auto available = static_cast<utf8proc_ssize_t>(text.size() - *position < 4 ? text.size() - *position : 4);
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, available, &code_point);
  if (length <= 0) return -1;
  *position += static_cast<size_t>(length);
  return code_point;
}

void append_utf8(int32_t code_point, std::string* out) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(code_point, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

void check_utf8(std::string_view text, const std::string& where) {
  const size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) return;
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned char>(text[valid]));
  throw Error(join_text(where, ": not valid UTF-8 at byte ", valid, " of ", text.size(), " (", byte,
                        "); convert the text to UTF-8, or use the tokenizer 'bytes' or 'bpe', which take any bytes"));
}

std::string show_code_point(int32_t code_point) {
  char number[16];
  std::snprintf(number, sizeof number, "U+%04X", static_cast<unsigned>(code_point));
  std::string shown = number;
  if (utf8proc_category(code_point) == UTF8PROC_CATEGORY_CC) return shown;
  shown += " '";
  append_utf8(code_point, &shown);
  return shown + "'";
}

}  // namespace headshare
