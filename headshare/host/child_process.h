// A ChildProcess is a program that this one started and watches: what it says to people, and how it ended.
//
// It has a process group of its own, so that Ctrl-C reaches the parent alone, which asks the child to stop. Its
// standard input and output are /dev/null.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

class ChildProcess {
 public:
  using OnNote = std::function<void(const std::string&)>;

  struct End {
    int code = 0;     // what the program returned; -1 where a signal ended it
    std::string how;  // "" where it ended well, else its last error or a sentence that says how it ended
  };

  // Starts `program` with these words behind its name. `on_note` gets each line of its standard error that is no error,
  // from look() and wait(). Throws Error when no process can be started.
  ChildProcess(const fs::path& program, const std::vector<std::string>& words, OnNote on_note);

  // Ends a process that still runs, and waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  int said_here() const { return pipe_[0]; }  // a descriptor that can be read once the process said something or ended

  // Takes what it said; returns how it ended, or nothing while it runs.
  std::optional<End> look();

  End wait();

  // Asks the process to stop (SIGTERM).
  void ask_to_stop();

 private:
  void start(const fs::path& program, const std::vector<std::string>& words);
  bool pump();
  void hear(const std::string& line);
  End end_of(int status) const;

  OnNote on_note_;
  std::array<int, 2> pipe_ = {-1, -1};
  std::string rest_;
  std::string last_error_;
  pid_t id_ = 0;
  std::optional<End> end_;
};

}  // namespace headshare
