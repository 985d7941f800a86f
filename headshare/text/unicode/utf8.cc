#include "headshare/text/unicode/utf8.h"

#include <utf8proc.h>

#include <cstdio>

#include "headshare/base/error.h"

namespace headshare {

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
                        "); convert the text to UTF-8; the tokenizers 'bytes' and 'bpe' take any bytes"));
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
