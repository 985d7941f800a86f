// Ranges of code points, in ascending order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace headshare {

struct CodePointRange {
  int32_t first;
  int32_t last;
};

// `ranges` ascend.
template <size_t N>
bool is_in(const CodePointRange (&ranges)[N], int32_t c) {
  const CodePointRange* range =
      std::lower_bound(std::begin(ranges), std::end(ranges), c,
                       [](const CodePointRange& one, int32_t point) { return one.last < point; });
  return range != std::end(ranges) && range->first <= c;
}

}  // namespace headshare
