// Asks the system about RAM, and about the time that this process waited for a core.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace headshare {

// Returns the entry `key` of a /proc file of lines "Key:   n kB" ("/proc/meminfo", "/proc/self/status"), in bytes;
// nothing where the system does not tell.
std::optional<int64_t> proc_bytes(const std::string& file, const std::string& key);

// Returns the highest resident memory this process has had so far; 0 where the system does not tell.
int64_t peak_memory_bytes();

// Measures how long threads of this process stood ready and had to wait for a core, since the meter was made: other
// programs took the time. A machine that is idle otherwise gives nearly 0, and one that two programs share about 1 for
// each thread.
class WaitMeter {
 public:
  // With more threads than cores the program waits for itself, so share() tells nothing.
  explicit WaitMeter(int64_t threads);

  // Returns all threads' waiting together, over the time since. Nothing where the system does not tell (schedstat of
  // Linux).
  std::optional<double> share() const;

 private:
  int64_t threads_;
  double began_;
  std::map<std::string, int64_t> waited_;  // of each thread so far, in nanoseconds
};

}  // namespace headshare
