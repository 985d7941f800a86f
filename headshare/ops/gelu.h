// The activation between the two halves of a feed-forward layer.
#pragma once

#include <ATen/core/Tensor.h>

#include "headshare/kernels/passes.h"

namespace headshare {

using at::Tensor;
using kernels::GeluForm;

// gelu(x) of every value, in x's type and shape. On the CPU in float32 and bfloat16 by headshare's own pass, which
// keeps x for the gradient and nothing else; elsewhere libtorch's.
Tensor gelu(const Tensor& x, GeluForm form);

}  // namespace headshare
