// A progress line tells, on standard error, how far a long piece of work has come.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "headshare/cli/terminal/terminal.h"

namespace headshare {

// On a terminal this is one line that is written over, at most ten times a second. Elsewhere it writes few lines: one
// when another tenth is done, though not within 5 s of the last, or 30 s after it; short work stays silent.
class ProgressLine {
 public:
  using Clock = std::function<double()>;  // seconds

  struct Output {
    std::FILE* file = stderr;
    bool terminal = is_terminal(Stream::kError);
    int width = terminal_width(Stream::kError);
    Clock now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
  };

  explicit ProgressLine(std::string title) : ProgressLine(std::move(title), Output()) {}
  ProgressLine(std::string title, Output output);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `done` of `total` in any unit; a total of 0 is unknown. `details` ("loss 3.21  1,204 tokens/s") follow the
  // percentage and the time left.
  void update(double done, double total, std::string_view details = "");

  // Takes the line off a terminal, until the next update.
  void hide();

 private:
  bool due(double fraction, double now) const;
  std::string line(double fraction, double now, std::string_view details) const;

  std::string title_;
  Output output_;
  double started_;
  double written_;               // when the last line was written
  double written_fraction_ = 0;  // and how far the work was
  double first_fraction_ = -1;   // at the first update: where a resumed run began
  bool shown_ = false;
};

// Takes the progress line on the screen away, so that a message can be written.
void hide_progress();

}  // namespace headshare
