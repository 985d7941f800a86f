#include "headshare/cli/terminal/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "headshare/base/error.h"
#include "headshare/cli/terminal/exit_codes.h"

namespace headshare {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

// A signal that follows another within this time is the same Ctrl-C: the terminal sends it to the program and to a
// program around it, which passes it on.
constexpr int64_t kSameSignalMilliseconds = 500;
std::atomic<int64_t> first_signal{0};  // milliseconds
static_assert(std::atomic<int64_t>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

int64_t now_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void on_signal(int) {
  const int64_t now = now_milliseconds();
  if (!stop.exchange(true)) {
    first_signal = now;
  } else if (now - first_signal > kSameSignalMilliseconds) {
    ::_exit(kInterrupted);
  }
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
