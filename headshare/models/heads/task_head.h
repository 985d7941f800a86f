// The task head gives a fine-tuned encoder's answer: one linear map from the hidden states that its kind reads.
#pragma once

#include "headshare/models/blocks/options.h"
#include "headshare/ops/linear.h"

namespace headshare {

class TaskHeadImpl : public Layer {
 public:
  explicit TaskHeadImpl(const EncoderOptions& resolved);

  // Returns W dropout(x) + b: [.., R] -> [.., C]; R is E, for words 3 E. A head that reads every token drops nothing,
  // as BERT's.
  Tensor forward(const Tensor& x) const;

 private:
  double dropout_;
  Linear output_;
};
TORCH_MODULE(TaskHead);

}  // namespace headshare
