// A value that is cheap to compute need not be kept for the backward pass, not even where several operations saved it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace headshare {

using at::Tensor;

// Returns `result`, which was computed from `value` alone of what depends on it: from now on `value` has no memory, and
// nothing may read it, until the backward pass reaches `result`. Then make() is called, without gradients and in the
// precision of now, and `value` gets the memory of what it returns, which must be the same bits at once. `read` lists
// the tensors that make() reads, undefined ones allowed: the backward pass throws torch's error about in-place
// operations where one of them has changed since. Where no operation saved `value`, or without gradient mode, nothing
// happens.
Tensor made_again(const Tensor& value, const std::vector<Tensor>& read, std::function<Tensor()> make,
                  const Tensor& result);

// Tells whether an operation that reads an emptied value throws. torch 2.11 cannot take such an error back when the
// value is made again, so there a reader finds no memory.
bool emptied_values_refuse_reading();

}  // namespace headshare
