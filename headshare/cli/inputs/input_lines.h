// Standard input line by line, without a byte order mark at its start.
#pragma once

#include <string>

namespace headshare {

// Ctrl-C ends the waiting: Interrupted. Throws Error for a line of more than 256 MiB.
class InputLines {
 public:
  // The next line without its end; false when there is none.
  bool next(std::string* line);

  // Whether next() answers without waiting for more input.
  bool ready() const;

 private:
  void read_more();

  std::string buffer_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace headshare
