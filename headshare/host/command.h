// Starts another program, such as those of a cluster's queue, and reads what it writes.
#pragma once

#include <string>
#include <vector>

namespace headshare {

struct CommandResult {
  int status = 0;  // as waitpid() gives it; 0 when the program ended well
  std::string out = {};
  std::string error = {};
};

// Runs a program that stands in PATH to its end. No shell reads the words. The program gets no input, and a process
// group of its own, so that Ctrl-C does not reach it. Throws Error when it cannot be started; tells nothing of how it
// ended.
CommandResult run_command(const std::vector<std::string>& words);

// Tells whether PATH has this program.
bool has_command(const std::string& name);

// Returns the sentence for a status of waitpid(): "exit code 3", "signal 9 (Killed)".
std::string ended_with(int status);

}  // namespace headshare
