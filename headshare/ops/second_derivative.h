// No kernel here has a second derivative.
#pragma once

#include <ATen/core/grad_mode.h>

#include "headshare/base/error.h"

namespace headshare {

// Throws Error in a backward pass that is differentiated itself (create_graph): its gradients would lack the terms of
// `what`, without a word.
inline void refuse_second_derivative(const char* what) {
  HS_CHECK(
      !at::GradMode::is_enabled(), what,
      " has no second derivative: leave create_graph out, or write this part of the model with torch's own operations");
}

}  // namespace headshare
