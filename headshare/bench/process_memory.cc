#include "headshare/bench/process_memory.h"

#include <algorithm>
#include <fstream>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "headshare/base/proc.h"

namespace headshare {
namespace {

// Lets the peak fall back to what is resident now.
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
  const std::optional<int64_t> before = proc_bytes("/proc/self/status", "VmRSS");
  const bool known = reset_peak();
  action();
  const std::optional<int64_t> peak = proc_bytes("/proc/self/status", "VmHWM");
  if (!known || !before || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before);
}

}  // namespace headshare
