// The program: finds the verb of a call, runs it, and says how it ended.
#pragma once

#include <functional>
#include <string>

#include "headshare/cli/arguments/args.h"

namespace headshare {

// This is how a call ended.
struct Conclusion {
  int code = 0;           // an ExitCode
  std::string error;      // what went wrong, in one line; "" where nothing did
  std::string note = {};  // what else the user should know: that the work was stopped
  bool lost = false;      // another process of the run is gone, and may know why
};

// Runs the verb that leads `words`; `prepare` is called before one that computes. Whatever goes wrong is in the
// conclusion, nothing is thrown.
Conclusion run_program(Words words, const std::function<void()>& prepare = {});

// Makes the standard streams and signals such that a verb may rely on them, and prints notices.
void prepare_process();

}  // namespace headshare
