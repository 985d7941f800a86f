#include "headshare/base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/proc.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace fs = std::filesystem;
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Returns the number that a file begins with; nothing where it is missing or begins otherwise ("max").
std::optional<double> number_in_file(const fs::path& path) {
  std::ifstream in(path);
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// Returns the number behind `key` in a file of lines "key number"; 0 where there is none.
double entry_of(const fs::path& path, const std::string& key) {
  std::ifstream in(path);
  std::string found;
  for (double value = 0; in >> found >> value;) {
    if (found == key) return value;
  }
  return 0;
}

// Returns the cgroup of this process, of version 2: "/" in most containers.
fs::path own_cgroup() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

}  // namespace

double available_memory_bytes() {
  const double in_group = memory_left_in_cgroup("/sys/fs/cgroup", own_cgroup());
  const std::optional<int64_t> system = proc_bytes("/proc/meminfo", "MemAvailable");
  return system ? std::min(static_cast<double>(*system), in_group) : in_group;
}

double memory_left_in_cgroup(const fs::path& root, const fs::path& path) {
  double least = kUnlimited;
  for (fs::path group = path.relative_path();; group = group.parent_path()) {
    const fs::path folder = root / group;
    if (const std::optional<double> limit = number_in_file(folder / "memory.max")) {
      const double used = number_in_file(folder / "memory.current").value_or(0);
      const double given_back = std::min(used, entry_of(folder / "memory.stat", "inactive_file"));
      least = std::min(least, std::max(0.0, *limit - used + given_back));
    }
    if (group.empty()) return least;
  }
}

void check_memory(double needed, const std::string& what, const std::string& way_out) {
  const double available = available_memory_bytes();
  HS_CHECK(needed <= available, what, " needs about ", format_bytes(needed), " and ", format_bytes(available),
           " are available; ", way_out);
}

}  // namespace headshare
