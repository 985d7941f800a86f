// Ctrl-C, and the SIGTERM of a scheduler: long work is asked to stop and ends well.
#pragma once

namespace headshare {

// From here on the first SIGINT, SIGTERM or SIGHUP only sets a flag; the second ends the process at once.
// Called by verbs whose work looks at the flag; in all others the signal ends the process.
void catch_interrupts();

bool stop_requested();

// Throws Interrupted once a stop is requested.
void check_interrupted();

// Writing past a size limit (SIGXFSZ) or into a closed pipe (SIGPIPE) becomes an error code.
void ignore_write_signals();

}  // namespace headshare
