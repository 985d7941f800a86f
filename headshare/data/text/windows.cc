#include "headshare/data/text/windows.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {

EvaluationWindows::EvaluationWindows(TokenData tokens, const WindowOptions& options)
    : tokens_(std::move(tokens)), options_(options) {
  if (options_.stride == 0) options_.stride = options_.context;
  HS_CHECK(options_.batch_size > 0 && options_.context > 0, "batch size ", options_.batch_size, " and context ",
           options_.context, " must be at least 1");
  HS_CHECK(options_.stride > 0 && options_.stride <= options_.context, "the stride must be within 1 and the context, ",
           options_.context, ", not ", options_.stride, ": a larger one would leave tokens out");
  HS_CHECK(tokens_.size() >= 2, "a text of ", tokens_.size(), " tokens cannot be scored: at least 2 are needed");
  const int64_t rest = std::max<int64_t>(scored() - options_.context, 0);
  windows_ = 1 + (rest + options_.stride - 1) / options_.stride;
}

Batch EvaluationWindows::batch(int64_t index) const {
  HS_CHECK(index >= 0 && index < batches(), "there is no batch ", index, " among ", batches());
  const int64_t first = index * options_.batch_size;
  const int64_t rows = std::min(options_.batch_size, windows_ - first);
  const int64_t length = std::min(options_.context, scored() - first * options_.stride);
  const auto values = static_cast<size_t>(rows * length);
  Batch batch{.rows = rows,
              .length = length,
              .inputs = std::vector<int64_t>(values, 0),
              .targets = std::vector<int64_t>(values, kIgnoredTarget)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = (first + row) * options_.stride;
    const int64_t inputs = std::min(length, scored() - begin);
    const int64_t seen = first + row == 0 ? 0 : options_.context - options_.stride;  // targets scored before
    tokens_.copy(begin, inputs, batch.inputs.data() + row * length);
    tokens_.copy(begin + 1 + seen, inputs - seen, batch.targets.data() + row * length + seen);
    batch.scored += inputs - seen;
  }
  return batch;
}

}  // namespace headshare
