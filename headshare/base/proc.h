// What the system tells about memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headshare {

// The entry `key` of a /proc file of lines "Key:   n kB" ("/proc/meminfo", "/proc/self/status"), in bytes; nothing
// where the system does not tell.
std::optional<int64_t> proc_bytes(const std::string& file, const std::string& key);

// The highest resident memory this process has had so far; 0 where the system does not tell.
int64_t peak_memory_bytes();

}  // namespace headshare
