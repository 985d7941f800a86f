// Decodes past the context of a model whose positions end (learned, sinusoidal): a window slides over the text.
#pragma once

#include <functional>

#include "headshare/decode/generate.h"

namespace headshare {

// This StepFunction never shows the model more than `context` tokens. When a step would not fit, it begins a model with
// an empty cache and feeds it the last half of the context, the new token included.
//
// A fresh cache is needed because every token changes its position: what the cache holds of a token was computed at the
// old one. Keeping half makes that cheap: of `context` tokens, half are read again once every context / 2 steps, so
// that a step reads about one token more than without sliding. Keeping all but one would read the whole context in
// every step. The price is that a prediction sees between half of the context and all of it.
//
// A first call with more than `context` tokens (a long prompt) shows the model the last `context` of them.
class SlidingWindow {
 public:
  // `begin` returns the step function of a model with an empty cache, which is then called as generate() does.
  // `context` is at least 1.
  SlidingWindow(std::function<StepFunction()> begin, int64_t context);

  std::vector<float> operator()(std::span<const int32_t> new_tokens);

  int64_t slides() const { return slides_; }  // so far; a prompt that was cut is none

 private:
  std::vector<float> feed(std::span<const int32_t> tokens);

  std::function<StepFunction()> begin_;
  size_t context_;
  StepFunction step_;
  std::vector<int32_t> window_ = {};  // what the model has seen
  int64_t slides_ = 0;
};

}  // namespace headshare
