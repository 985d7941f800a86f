// What a loss passes over.
#pragma once

#include <cstdint>

namespace headshare {

// A target that is not to be predicted, as torch's cross_entropy ignores it by default.
inline constexpr int64_t kIgnoredTarget = -100;

}  // namespace headshare
