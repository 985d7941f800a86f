#include "headshare/base/memory.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/proc.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

double number_in_file(const char* path) {
  std::ifstream in(path);
  double value = 0;
  return in >> value ? value : std::numeric_limits<double>::infinity();
}

}  // namespace

double available_memory_bytes() {
  const double limit = number_in_file("/sys/fs/cgroup/memory.max");  // "max" reads as no number
  const double used = number_in_file("/sys/fs/cgroup/memory.current");
  const double in_group = std::isfinite(limit) && std::isfinite(used) ? std::max(0.0, limit - used) : limit;
  const std::optional<int64_t> system = proc_bytes("/proc/meminfo", "MemAvailable");
  return system ? std::min(static_cast<double>(*system), in_group) : in_group;
}

void check_memory(double needed, const std::string& what, const std::string& way_out) {
  const double available = available_memory_bytes();
  HS_CHECK(needed <= available, what, " needs about ", format_bytes(needed), " and ", format_bytes(available),
           " are available; ", way_out);
}

}  // namespace headshare
