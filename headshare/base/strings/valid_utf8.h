// Tells which bytes are UTF-8, as Unicode defines it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headshare {

// Returns how many leading bytes of `text` are valid UTF-8 (all of them when the result is text.size()).
size_t valid_utf8_prefix(std::string_view text);

// Returns the code point at byte `*position`, which moves past it; -1 (and `*position` stays) where the bytes are not
// valid UTF-8. Requires *position < text.size().
int32_t next_code_point(std::string_view text, size_t* position);

}  // namespace headshare
