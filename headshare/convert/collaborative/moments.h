// Means and second moments of what layers read: where an approximation must be good.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headshare {

using at::Tensor;

// Sums and moments are in double.
struct Moments {
  int64_t tokens = 0;
  Tensor mean = {};    // [E]
  Tensor second = {};  // mean of x^T x: [E, E]
};

class MomentSums {
 public:
  // x [.., E].
  void add(const Tensor& x);
  Moments moments() const;  // of at least one token

 private:
  int64_t tokens_ = 0;
  Tensor sum_, squares_;
};

}  // namespace headshare
