#include "headshare/base/strings/valid_utf8.h"

#include <utf8proc.h>

#include <cstring>

namespace headshare {

size_t valid_utf8_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    // The loop takes eight bytes at a time, because most text is mostly ASCII.
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

}  // namespace headshare
