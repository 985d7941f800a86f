// The replacements that the tokenizers 13a and zh and Tercom's normalization share. Bytes are enough for them:
// they look for ASCII only.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

// Every `from` becomes `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Blanks around ASCII signs other than . , - and '
std::string separate_signs(std::string_view text);

// Blanks around points and commas that have no digit before them, then around those that have none behind them, then
// around a dash behind a digit.
std::string separate_points(std::string_view text);

}  // namespace headshare
