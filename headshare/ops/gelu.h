// GELU is the activation between the two halves of a feed-forward layer.
#pragma once

#include <ATen/core/Tensor.h>

#include "headshare/kernels/passes.h"

namespace headshare {

using at::Tensor;
using kernels::GeluForm;

// Returns gelu(x) of every value, in x's type and shape. On the CPU in float32 and bfloat16 headshare's own pass
// computes it, which keeps x for the gradient and nothing else; elsewhere libtorch's.
Tensor gelu(const Tensor& x, GeluForm form);

// These are the two halves of gelu() on the CPU, for operations that make it a part of theirs; float32 or bfloat16,
// contiguous.
Tensor gelu_values(const Tensor& x, GeluForm form);

// Writes dx = dy gelu'(x), all of x's shape; dx may be dy.
void gelu_gradient(const Tensor& x, const Tensor& dy, GeluForm form, const Tensor& dx);

}  // namespace headshare
