// This header lists what the program's exit status says.
#pragma once

namespace headshare {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kInterrupted = 130,   // as a shell reports SIGINT
  kOutputClosed = 141,  // as a shell reports SIGPIPE
};

}  // namespace headshare
