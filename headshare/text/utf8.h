// UTF-8 as Unicode defines it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headshare {

// How many leading bytes of `text` are valid UTF-8 (all of them when the result is text.size()).
size_t valid_utf8_prefix(std::string_view text);

// The code point at byte `*position`, which moves past it; -1 (and `*position` stays) where the
// bytes are not valid UTF-8. Requires *position < text.size().
int32_t next_code_point(std::string_view text, size_t* position);

// Appends a code point (0 .. 0x10FFFF, no surrogate) as UTF-8.
void append_utf8(int32_t code_point, std::string* out);

// Throws Error naming the byte offset when `text` is not valid UTF-8; `where` leads the message.
void check_utf8(std::string_view text, const std::string& where);

// A code point for messages: "U+0041 'A'"; control characters without the quotes.
std::string show_code_point(int32_t code_point);

}  // namespace headshare
