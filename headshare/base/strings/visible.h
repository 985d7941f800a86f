// Makes text of files and arguments safe to show. A terminal obeys control characters: ESC begins commands that move
// the cursor, rename the window or hide what was written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headshare {

// Returns `text` with every control character written out: "\x1b" for ESC. These are the C0 set but for line feed and
// tab, DEL, and the C1 set (U+0080 to U+009F). Bytes that are no UTF-8 are written out, too. A backslash stays as it
// is, so that calling this twice changes nothing.
std::string visible(std::string_view text);

// Returns the same on one line: line feed and tab become "\n" and "\t".
std::string visible_line(std::string_view text);

// Returns a text as a label shows it: line ends and tabs become blanks, other control characters are written out.
std::string printable(std::string text);

// Returns a label of at most `most` characters: printable(), and the last character is "…" where more would follow.
std::string abbreviated(const std::string& text, size_t most);

// Returns valid UTF-8 of more than `most` bytes with " ...(N bytes)... " in place of its middle, by whole characters;
// shorter text as it is. Four fifths of what stays are from its beginning.
std::string shortened(std::string_view text, size_t most);

// Returns a message as the program prints it: visible_line(), and nobody has to scroll. A word without a blank (a path,
// a value) keeps 500 bytes, the message 4,000. Values that stand in messages are shorter than that where brief_text()
// quotes them.
std::string message_line(std::string_view message);

// Returns JSON with DEL and the C1 set as \u007f and so on, which JSON allows raw: still JSON, and the same values.
std::string visible_json(std::string_view json);

}  // namespace headshare
