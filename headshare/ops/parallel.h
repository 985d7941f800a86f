// Gives the kernels threads: those of libtorch.
#pragma once

#include "headshare/kernels/parallel.h"

namespace headshare {

// Returns as many threads as at::get_num_threads(), one inside another parallel part. An exception thrown by an item
// reaches the caller once all items are done.
kernels::Parallel torch_threads();

}  // namespace headshare
