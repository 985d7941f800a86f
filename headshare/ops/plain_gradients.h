// Finds gradients by autograd where a caller has switched autograd off: in the kernels of torch's dispatcher.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace headshare {

using at::Tensor;

// Returns the gradients of `inputs` for the gradients of piece(inputs), by running the piece again under autograd.
// Zeros for inputs that the piece does not use; undefined inputs stay undefined, as do their gradients.
std::vector<Tensor> plain_gradients(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& piece,
                                    const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients);

}  // namespace headshare
