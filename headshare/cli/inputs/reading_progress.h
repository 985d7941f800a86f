// A progress line shows how far the reading of a text is.
#pragma once

#include "headshare/cli/terminal/progress.h"
#include "headshare/data/text/token_cache.h"

namespace headshare {

// Shows reading and tokenising on `line`, and stops with Interrupted when the user asks.
Progress show_reading(ProgressLine& line);

// Returns what `read` returns, and shows a line of progress meanwhile.
template <class Read>
auto shown_while_read(const Read& read) {
  ProgressLine line("text");
  return read(show_reading(line));
}

}  // namespace headshare
