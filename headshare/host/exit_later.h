// These exit codes of `headshare cell` say that the cell is to be called again.
#pragma once

namespace headshare {

inline constexpr int kExitLater = 75;  // EX_TEMPFAIL of sysexits.h: schedulers and `parallel --retries` try again
inline constexpr int kExitInterrupted = 130;  // it was asked to stop, and its work is kept; as a shell reports SIGINT

}  // namespace headshare
