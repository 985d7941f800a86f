// For tests only: tokens that are numbered.
#pragma once

#include <numeric>
#include <vector>

#include "headshare/data/text/token_data.h"

namespace headshare {

// Token i is i: a batch or a window shows where it comes from.
inline TokenData counting(int64_t size) {
  std::vector<int32_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return TokenData::from_memory(ids, static_cast<uint64_t>(size));
}

}  // namespace headshare
