#include "headshare/cli/terminal/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "headshare/base/error.h"
#include "headshare/cli/terminal/exit_codes.h"

namespace headshare {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

void on_signal(int) {
  if (stop.exchange(true)) ::_exit(kInterrupted);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // SIGHUP says that the terminal was closed. Under nohup the signal is ignored, and stays so.
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
}

bool stop_requested() { return stop; }

void check_interrupted() {
  if (stop) throw Interrupted("stopped");
}

void ignore_write_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace headshare
