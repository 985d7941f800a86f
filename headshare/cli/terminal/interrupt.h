// Ctrl-C, and the SIGTERM of a scheduler, ask long work to stop, and it ends well.
#pragma once

namespace headshare {

// Makes the first SIGINT, SIGTERM or SIGHUP from here on only set a flag; the second ends the process at once, unless
// it follows within half a second. Verbs whose work looks at the flag call this; in all others the signal ends the
// process.
void catch_interrupts();

bool stop_requested();

// Throws Interrupted once a stop is requested.
void check_interrupted();

// Makes writing past a size limit (SIGXFSZ) or into a closed pipe (SIGPIPE) an error code.
void ignore_write_signals();

}  // namespace headshare
