// Standard output and standard error: results go to the one, everything else to the other.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace headshare {

enum class Stream { kOut, kError };

bool is_terminal(Stream stream);

// Columns to write in: $COLUMNS, else the terminal's, else 100; always within 40..100.
int terminal_width(Stream stream);

// The reader of standard output has gone (`headshare ... | head`): the program ends without a word.
class OutputClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes to standard output. Throws OutputClosed, or Error when it cannot be written (a full disk).
void print(std::string_view text);
void flush_output();

// One line on standard error, above a progress line: "note: ...", "error: ...".
void print_note(std::string_view text);
void print_error(std::string_view text);
void print_status(std::string_view text);  // without a label

// For a terminal: in bold, unless NO_COLOR is set or `stream` is no terminal.
std::string bold(std::string_view text, Stream stream);

// Columns that UTF-8 text takes, taking every code point as one column wide.
int display_width(std::string_view text);

// `text` cut at blanks into lines of at most `width` columns (longer words stay whole).
std::string wrap(std::string_view text, int width, int indent);

}  // namespace headshare
