// Breaks text into lines of a given width.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

// Returns the columns that UTF-8 text takes, taking every code point as one column wide.
int display_width(std::string_view text);

// Returns visible(text) cut at blanks into lines of at most `width` columns (longer words stay whole). Lines after the
// first begin with `indent` blanks.
std::string wrap(std::string_view text, int width, int indent);

}  // namespace headshare
