#include "headshare/bench/process_memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace headshare {
namespace {

// The entry `key` of /proc/self/status, in bytes.
std::optional<int64_t> status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    int64_t kilobytes = 0;
    if (name == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// The peak falls back to what is resident now.
bool reset_peak() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}

}  // namespace

std::optional<int64_t> peak_bytes_of(const std::function<void()>& action) {
#ifdef __GLIBC__
  malloc_trim(0);  // else the action could reuse what somebody before it took
#endif
  const std::optional<int64_t> before = status_bytes("VmRSS");
  const bool known = reset_peak();
  action();
  const std::optional<int64_t> peak = status_bytes("VmHWM");
  if (!known || !before || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before);
}

}  // namespace headshare
