// Every HTML page of headshare holds this, whatever it shows: its style, the script that sorts tables and shows values,
// and a content security policy that lets no other script run and no address be loaded.
#pragma once

#include <string>

namespace headshare {

// This tells our pages from others, near their beginning.
inline constexpr const char* kPageMark = "<meta name=\"generator\" content=\"headshare\">";

// Returns the whole file. `title` is text; `body` and `footer` are markup, in which every text from outside is escaped
// already.
std::string html_page(const std::string& title, const std::string& body, const std::string& footer);

}  // namespace headshare
