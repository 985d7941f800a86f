#include "headshare/base/proc.h"

#include <fstream>

namespace headshare {

std::optional<int64_t> proc_bytes(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    int64_t kilobytes = 0;
    if (name == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

int64_t peak_memory_bytes() {
  // Not getrusage(): its figure includes that of the process that started this one.
  return proc_bytes("/proc/self/status", "VmHWM").value_or(0);
}

}  // namespace headshare
