#include "headshare/decode/sliding_window.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {

SlidingWindow::SlidingWindow(std::function<StepFunction()> begin, int64_t context)
    : begin_(std::move(begin)), context_(static_cast<size_t>(context)), step_(begin_()) {
  HS_DCHECK(context >= 1);
}

std::vector<float> SlidingWindow::operator()(std::span<const int32_t> new_tokens) {
  const bool first = window_.empty();
  if (window_.size() + new_tokens.size() <= context_) return feed(new_tokens);
  window_.insert(window_.end(), new_tokens.begin(), new_tokens.end());
  const size_t kept = first ? context_ : std::max<size_t>(1, context_ / 2);
  const std::vector<int32_t> last(window_.end() - static_cast<std::ptrdiff_t>(kept), window_.end());
  window_.clear();
  if (!first) {
    step_ = nullptr;  // the old cache goes before the new one takes its memory
    step_ = begin_();
    ++slides_;
  }
  return feed(last);
}

std::vector<float> SlidingWindow::feed(std::span<const int32_t> tokens) {
  window_.insert(window_.end(), tokens.begin(), tokens.end());
  return step_(tokens);
}

}  // namespace headshare
