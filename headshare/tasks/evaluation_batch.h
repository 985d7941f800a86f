// How many sequences a task evaluates at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headshare {

// Training batches are small in small recipes: about 4,096 tokens, or a whole training batch where that is
// more, as long as the logits stay below 256 MiB.
inline int64_t evaluation_batch(int64_t training_batch, int64_t length, int64_t logits_per_position) {
  constexpr int64_t kTokens = 4096;
  constexpr int64_t kMostLogits = 1 << 26;
  const int64_t wanted = std::max(training_batch, kTokens / length);
  return std::clamp<int64_t>(kMostLogits / (length * logits_per_position), 1, wanted);
}

}  // namespace headshare
