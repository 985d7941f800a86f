// This header holds what conversions know about the norms of AttentionOptions::qk_norm.
#pragma once

namespace headshare {

// Norms over queries and keys add this under the root, as models with such norms have it.
inline constexpr double kQkNormEpsilon = 1e-6;

}  // namespace headshare
