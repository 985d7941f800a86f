// This header measures what a piece of work takes from the system at its peak, at the process: workspaces count,
// whoever allocated them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace headshare {

// Runs `action` and returns the highest resident memory while it ran, less that before; freed memory is given back to
// the system first. Returns nothing where the system does not tell (no /proc). A process that computes in another
// thread at the same time spoils the number.
std::optional<int64_t> peak_bytes_of(const std::function<void()>& action);

}  // namespace headshare
