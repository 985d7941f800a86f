// Computes lower case and character classes as Python's str has them, for scores defined by Python programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headshare {

// Returns Unicode's full lower-casing without a locale (str.lower): "ΟΔΟΣ" ends in a final sigma, "İ" becomes an "i"
// and a combining dot. Bytes that are not valid UTF-8 stay as they are.
std::string lower_case(std::string_view text);

// Appends what lower_case() makes of the code point that stands at the bytes [begin, end) of `text`.
void append_lower_case(std::string_view text, size_t begin, int32_t code_point, size_t end, std::string* out);

// Tells whether a regular expression's \w matches: letters, all kinds of numbers, '_'.
bool is_word_character(int32_t code_point);

// Tells whether str.split() splits here; U+001C..U+001F are among it, U+200B is not.
bool is_white_space(int32_t code_point);

}  // namespace headshare
