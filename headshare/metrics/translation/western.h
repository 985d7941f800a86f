// The tokenizers 13a and zh and Tercom's normalization share these replacements. They work on bytes, because they look
// for ASCII only.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

// Replaces every `from` by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Puts blanks around ASCII signs other than . , - and '
std::string separate_signs(std::string_view text);

// Puts blanks around points and commas that have no digit before them, then around those that have none behind them,
// then around a dash behind a digit.
std::string separate_points(std::string_view text);

}  // namespace headshare
