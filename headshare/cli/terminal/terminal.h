// This header writes to standard output and standard error: results go to the one, everything else to the other. It
// writes out the control characters of every text (visible.h), because texts hold files and arguments, so that no file
// can steer the terminal; our own codes are added after that.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "headshare/base/strings/wrap.h"

namespace headshare {

enum class Stream { kOut, kError };

bool is_terminal(Stream stream);

// Returns the columns to write in: $COLUMNS, else the terminal's, else 100; always within 40..100.
int terminal_width(Stream stream);

// The reader of standard output has gone (`headshare ... | head`): the program ends without a word.
class OutputClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Write to standard output. Throw OutputClosed, or Error when it cannot be written (a full disk).
void print(std::string_view text);         // results as text
void print_styled(std::string_view text);  // the same, with what bold() made
void print_json(std::string_view json);    // stays JSON with the same values
void print_text(std::string_view text);    // a model's own words: in a pipe byte for byte, on a terminal as print()
void flush_output();

// Prints what a verb found out: as JSON where the user asked for it, else by `text`. A program that wants both, such as
// the Python package, names one of its open file descriptors in HEADSHARE_JSON_FD: the JSON goes there, too. `json`
// is called only where its text goes somewhere.
void print_result(bool as_json, const std::function<std::string()>& json, const std::function<void()>& text);

// These print one line on standard error, above a progress line: "note: ...", "error: ...". Line feeds in it are
// written out.
void print_note(std::string_view text);
void print_error(std::string_view text);
void print_status(std::string_view text);  // without a label

// Returns the text in bold for a terminal, and as it is when NO_COLOR is set or `stream` is no terminal.
std::string bold(std::string_view text, Stream stream);

}  // namespace headshare
