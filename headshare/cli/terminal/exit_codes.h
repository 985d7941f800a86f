// This header lists what the program's exit status says.
#pragma once

#include "headshare/host/exit_later.h"

namespace headshare {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kLater = kExitLater,  // of `cell`
  kInterrupted = kExitInterrupted,
  kOutputClosed = 141,  // as a shell reports SIGPIPE
};

}  // namespace headshare
