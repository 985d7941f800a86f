#include "headshare/data/parallel/ordered_batches.h"

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"

namespace headshare {

std::vector<std::vector<int64_t>> ordered_batches(std::span<const int64_t> lengths, int64_t tokens, int64_t most) {
  HS_CHECK(tokens > 0 && most > 0, "batches of ", tokens, " tokens and ", most,
           " sentences; at least 1 of each is needed");
  const auto length = [lengths](int64_t place) { return lengths[static_cast<size_t>(place)]; };
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<std::vector<int64_t>> batches;
  int64_t room = 0;  // of the last batch, in places
  for (const int64_t place : order) {
    HS_CHECK(length(place) >= 0, "sentence ", place, " has the length ", length(place));
    if (room == 0) {
      batches.emplace_back();
      room = std::clamp<int64_t>(tokens / std::max<int64_t>(length(place), 1), 1, most);
    }
    batches.back().push_back(place);
    --room;
  }
  return batches;
}

}  // namespace headshare
