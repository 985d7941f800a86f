#include "headshare/base/proc.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace headshare {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Returns the waiting time of each thread of this process, in nanoseconds: the second number of its schedstat. A thread
// may end meanwhile.
std::map<std::string, int64_t> waited_by_thread() {
  std::map<std::string, int64_t> waited;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/task", error), end; !error && it != end;
       it.increment(error)) {
    std::ifstream in(it->path() / "schedstat");
    int64_t ran = 0, waiting = 0;
    if (in >> ran >> waiting) waited[it->path().filename().string()] = waiting;
  }
  return waited;
}

}  // namespace

WaitMeter::WaitMeter(int64_t threads) : threads_(threads), began_(now()), waited_(waited_by_thread()) {}

std::optional<double> WaitMeter::share() const {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const std::map<std::string, int64_t> after = waited_by_thread();
  if (after.empty() || waited_.empty() || cores == 0 || threads_ > cores) return std::nullopt;
  double waited = 0;
  for (const auto& [thread, nanoseconds] : after) {
    const auto before = waited_.find(thread);
    waited += 1e-9 * static_cast<double>(nanoseconds - (before == waited_.end() ? 0 : before->second));
  }
  return std::max(0.0, waited) / std::max(now() - began_, 1e-9);
}

std::optional<int64_t> proc_bytes(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    int64_t kilobytes = 0;
    if (name == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

int64_t peak_memory_bytes() {
  // getrusage() would be wrong: its figure includes that of the process that started this one.
  return proc_bytes("/proc/self/status", "VmHWM").value_or(0);
}

}  // namespace headshare
