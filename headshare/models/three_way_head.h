// Tells for each token whether it is the text's own (HashFormers' pre-training, docs/mathematics.md).
#pragma once

#include "headshare/models/options.h"
#include "headshare/ops/linear.h"

namespace headshare {

// The classes, in the order of the scores.
enum class ThreeWay : int64_t { kOriginal, kShuffled, kRandom };
inline constexpr int64_t kThreeWayClasses = 3;

// W dropout(h) + b.
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
