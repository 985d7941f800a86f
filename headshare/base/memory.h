// Tells how much RAM this process may still take, and refuses work that needs more.
#pragma once

#include <string>

namespace headshare {

// Returns the RAM that this process may still take: what the kernel calls available, or less under a cgroup limit.
// Throws nothing; where neither can be read, returns a very large number.
double available_memory_bytes();

// Throws Error with the estimate and what is available when `needed` does not fit. `way_out` ends
// the sentence: "use a smaller --batch-size".
void check_memory(double needed, const std::string& what, const std::string& way_out);

}  // namespace headshare
