// The best step along a direction, where the squared error is a polynomial of degree 6 in the step.
#pragma once

#include <ATen/core/Tensor.h>

namespace headshare {

using at::Tensor;

// coefficients [F, 7] of the powers 0 .. 6, double -> the positive step with the least value, [F]; 0 where no positive
// step is better than none.
Tensor best_steps(const Tensor& coefficients);

}  // namespace headshare
