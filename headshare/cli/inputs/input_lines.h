// This class reads standard input line by line, without a byte order mark at its start.
#pragma once

#include <string>

namespace headshare {

// Ctrl-C ends the waiting with Interrupted. A line of more than 256 MiB throws Error.
class InputLines {
 public:
  // Reads the next line without its end; returns false when there is none.
  bool next(std::string* line);

  // Tells whether next() answers without waiting for more input.
  bool ready() const;

 private:
  void read_more();

  std::string buffer_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace headshare
