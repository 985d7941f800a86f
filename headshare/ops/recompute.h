// Activation checkpointing means that a piece of the model keeps only its input and runs a second time in the backward
// pass. Dropout masks come from the site's key and the clock, so both runs agree.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace headshare {

using at::Tensor;

// Returns piece(input), whose intermediate results are not kept. Gradients reach `input` and every parameter the piece
// uses, exactly as without. Without gradient mode it simply calls the piece. The piece must outlive the backward pass
// and must not depend on state that changes in between, except on ComputeIn, which is restored.
Tensor recomputed(std::function<Tensor(const Tensor&)> piece, const Tensor& input);

// Does the same for a piece that reads two tensors: a block's input, and what its cross-attention reads.
Tensor recomputed(std::function<Tensor(const Tensor&, const Tensor&)> piece, const Tensor& input, const Tensor& other);

// Tells whether this thread runs a piece without gradients that will run again with them: both runs must give the same
// bits, so that nothing in it may be computed otherwise because there are none.
bool will_run_again();

}  // namespace headshare
