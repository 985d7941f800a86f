// Gives the kernels threads: those of libtorch.
#pragma once

#include <cstdint>
#include <functional>

#include "headshare/kernels/parallel.h"

namespace headshare {

// Returns as many threads as at::get_num_threads(), one inside another parallel part. An exception thrown by an item
// reaches the caller once all items are done.
kernels::Parallel torch_threads();

// Tells whether this process ever ran several threads here. libgomp keeps them, but not for the child of a fork, which
// would wait for them for ever.
bool torch_threads_were_used();

// at::parallel_for of a grain of 1, compiled with OpenMP: calls work(first, last) for pieces of [0, count), one piece a
// thread.
void in_torch_threads(int64_t count, const std::function<void(int64_t first, int64_t last)>& work);

}  // namespace headshare
