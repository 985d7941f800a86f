// Finds the best continuations of the hypotheses of a sentence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

struct ScoredRow {
  const float* log_probabilities = nullptr;  // [V]; -infinity forbids a token; none is NaN or +infinity
  float sum = 0;                             // of the hypothesis so far
};

struct Continuation {
  int64_t row = 0;
  int32_t token = 0;
  float sum = 0;  // the row's sum + the token's log probability, in float32
};

// Returns the `count` continuations with the largest sums, the largest first; of equal sums the lower row, then the
// lower token is first. Forbidden ones are left out, so that there may be fewer. It takes one pass over rows x V
// numbers.
std::vector<Continuation> best_tokens(std::span<const ScoredRow> rows, int64_t vocabulary, int64_t count);

}  // namespace headshare
