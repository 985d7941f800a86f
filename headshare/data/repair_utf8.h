// These functions make valid UTF-8 of bytes that are not, and cut between characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headshare {

// Returns the text with every ill-formed part replaced by U+FFFD, one per maximal subpart (Unicode 15, section 3.9), as
// browsers and Python's errors="replace" do.
std::string replace_invalid_utf8(std::string_view text);

// Returns the largest position <= `most` that is not inside a character. Where no character can be found (a run of
// continuation bytes) it is `most`.
size_t character_boundary(std::string_view text, size_t most);

}  // namespace headshare
