// Numbers that come from outside must be finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace headshare {

using at::Tensor;

// Throws Error led by `where` ("FILE: tensor 'x'") with the number of values that are NaN or infinite; `way_out` ends
// the sentence.
void check_finite(const Tensor& values, const std::string& where, const std::string& way_out);

}  // namespace headshare
