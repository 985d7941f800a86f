// Checking text for what a UTF-8 reader would stumble over.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headshare {

// The position of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7:
// no overlong forms, no surrogates, nothing past U+10FFFF), or nothing.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// The text with every ill-formed part replaced by U+FFFD, one per maximal subpart, as browsers and
// Python's errors="replace" do.
std::string replace_invalid_utf8(std::string_view text);

// The largest position <= `most` that is not inside a character. Where no character can be found
// (a run of continuation bytes) it is `most`.
size_t character_boundary(std::string_view text, size_t most);

}  // namespace headshare
