// This header holds the options of low-rank key-value attention.
#pragma once

#include <cstdint>
#include <optional>

namespace headshare {

struct LrkvOptions {
  std::optional<int64_t> rank = {};  // r; default a quarter of the head width
  double start = 0.5;                // how large residuals start, as a multiple of what all heads share
};

}  // namespace headshare
