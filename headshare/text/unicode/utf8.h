// Treats text as code points: writes them as UTF-8, and shows them in errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headshare/base/strings/valid_utf8.h"

namespace headshare {

// Appends a code point (0 .. 0x10FFFF, no surrogate) as UTF-8.
void append_utf8(int32_t code_point, std::string* out);

// Throws Error naming the byte offset when `text` is not valid UTF-8; `where` leads the message.
void check_utf8(std::string_view text, const std::string& where);

// Returns a code point for messages: "U+0041 'A'"; control characters without the quotes.
std::string show_code_point(int32_t code_point);

}  // namespace headshare
