// A loss passes over this target.
#pragma once

#include <cstdint>

namespace headshare {

// This target is not to be predicted, as torch's cross_entropy ignores it by default.
inline constexpr int64_t kIgnoredTarget = -100;

}  // namespace headshare
