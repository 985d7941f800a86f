#include "headshare/models/finite.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/base/error.h"

namespace headshare {

void check_finite(const Tensor& values, const std::string& where, const std::string& way_out) {
  // One pass suffices: values that are not finite stay so in a sum, and in double no sum of floats overflows.
  if (values.scalar_type() != at::kDouble && std::isfinite(values.sum(at::kDouble).item<double>())) return;
  const int64_t bad = values.numel() - at::isfinite(values).sum().item<int64_t>();
  HS_CHECK(bad == 0, where, " has ", bad, " values of ", values.numel(), " that are not finite (NaN or infinite); ",
           way_out);
}

}  // namespace headshare
