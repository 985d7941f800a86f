// Windows over a text serve evaluation: every token but the first is scored exactly once.
#pragma once

#include <cstdint>

#include "headshare/data/text/batcher.h"

namespace headshare {

struct WindowOptions {
  int64_t batch_size = 32;
  int64_t context = 128;  // T, most inputs per window
  int64_t stride = 0;     // inputs between the starts of windows, 1..context; 0: context, disjoint windows
};

// Window k has the inputs [k stride, k stride + T), cut off at the last token but one. The first
// window scores all its targets, every other only those that no window before it scored (its last
// `stride` ones): with a small stride each token is predicted from at least T - stride tokens.
// With stride T this is nanoGPT's evaluation over a whole text instead of a sample.
// With n tokens n - 1 are scored; the first has nothing to be predicted from.
class EvaluationWindows {
 public:
  // Throws Error when there are fewer than 2 tokens or the stride is not within 1..context.
  EvaluationWindows(TokenData tokens, const WindowOptions& options);

  int64_t windows() const { return windows_; }
  int64_t batches() const { return (windows_ + options_.batch_size - 1) / options_.batch_size; }

  // Returns the total of Batch::scored over all batches.
  int64_t scored() const { return tokens_.size() - 1; }

  // Returns batch number `index` of batches(). The last has fewer rows when the windows do not fill it. A window that
  // is cut off is padded on its right with input 0 and ignored targets; all rows of a batch are as long as its longest
  // window.
  Batch batch(int64_t index) const;

 private:
  TokenData tokens_;
  WindowOptions options_;
  int64_t windows_ = 0;
};

}  // namespace headshare
