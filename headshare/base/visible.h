// Text of files and arguments, made safe to show. A terminal obeys control characters: ESC begins commands that
// move the cursor, rename the window or hide what was written.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

// `text` with every control character written out: "\x1b" for ESC. These are the C0 set but for line feed and tab,
// DEL, and the C1 set (U+0080 to U+009F). Bytes that are no UTF-8 are written out, too. A backslash stays as it is,
// so that calling this twice changes nothing.
std::string visible(std::string_view text);

// The same on one line: line feed and tab become "\n" and "\t".
std::string visible_line(std::string_view text);

// JSON with DEL and the C1 set as \u007f and so on, which JSON allows raw: still JSON, and the same values.
std::string visible_json(std::string_view json);

}  // namespace headshare
