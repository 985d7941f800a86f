#include "headshare/convert/collaborative/moments.h"

#include <ATen/ATen.h>

namespace headshare {

void MomentSums::add(const Tensor& x) {
  const Tensor rows = x.reshape({-1, x.size(-1)}).to(at::kDouble);
  if (!sum_.defined()) {
    sum_ = at::zeros({rows.size(1)}, rows.options());
    squares_ = at::zeros({rows.size(1), rows.size(1)}, rows.options());
  }
  tokens_ += rows.size(0);
  sum_ += rows.sum(0);
  squares_.addmm_(rows.t(), rows);
}

Moments MomentSums::moments() const {
  const auto n = static_cast<double>(tokens_);
  return {.tokens = tokens_, .mean = sum_ / n, .second = squares_ / n};
}

}  // namespace headshare
