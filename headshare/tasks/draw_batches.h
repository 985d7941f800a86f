// Draws the batches of a step for tasks that score tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace headshare {

// Replaces `*drawn` by `count` batches, each a call of next(), and returns how many targets they score together.
template <class Batch, class Next>
int64_t draw_batches(int64_t count, std::vector<Batch>* drawn, const Next& next) {
  drawn->clear();
  int64_t targets = 0;
  for (int64_t i = 0; i < count; ++i) {
    drawn->push_back(next());
    targets += drawn->back().scored;
  }
  return targets;
}

}  // namespace headshare
