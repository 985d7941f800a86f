// Tells how much RAM this process may still take, and refuses work that needs more.
#pragma once

#include <filesystem>
#include <string>

namespace headshare {

// Returns the RAM that this process may still take: what the kernel calls available, or less under a limit of its
// cgroup (version 2). Throws nothing; where neither can be read, returns infinity.
double available_memory_bytes();

// Returns what the limits of the cgroup `path` ("/job/step") and of all groups above it leave, as the files below
// `root` say: the limit less what is used. Pages of files that nobody used lately do not count as used: the kernel
// gives them back before it refuses memory. Infinity where there is no limit.
double memory_left_in_cgroup(const std::filesystem::path& root, const std::filesystem::path& path);

// Throws Error with the estimate and what is available when `needed` does not fit. `way_out` ends
// the sentence: "use a smaller --batch-size".
void check_memory(double needed, const std::string& what, const std::string& way_out);

}  // namespace headshare
