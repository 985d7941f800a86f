// The three-way head tells for each token whether it is the text's own (HashFormers' pre-training,
// docs/mathematics.md).
#pragma once

#include "headshare/models/blocks/options.h"
#include "headshare/ops/linear.h"

namespace headshare {

// The classes stand in the order of the logits.
enum class ThreeWay : int64_t { kOriginal, kShuffled, kRandom };
inline constexpr int64_t kThreeWayClasses = 3;

// The head computes W dropout(h) + b.
class ThreeWayHeadImpl : public Layer {
 public:
  explicit ThreeWayHeadImpl(const EncoderOptions& resolved);

  Tensor forward(const Tensor& hidden) const;  // [N, E] -> [N, 3]

 private:
  double dropout_;
  Linear output_;
};
TORCH_MODULE(ThreeWayHead);

}  // namespace headshare
