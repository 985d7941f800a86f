#include "headshare/attention/rotary.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"

namespace headshare {

Tensor rotate(const Tensor& x, int64_t first, double base) { return rotate(x, first, base, x.size(3)); }

Tensor rotate(const Tensor& x, int64_t first, double base, int64_t period) {
  const int64_t T = x.size(2);
  const int64_t half = x.size(3) / 2;
  HS_DCHECK(period % 2 == 0 && x.size(3) % period == 0);
  const auto options = x.options().dtype(at::kDouble).requires_grad(false);
  const Tensor exponent = at::arange(period / 2, options) * (-2.0 / static_cast<double>(period));
  const Tensor frequency = at::pow(base, exponent).repeat({x.size(3) / period});        // [D/2]
  const Tensor angle = at::arange(first, first + T, options).unsqueeze(1) * frequency;  // [T, D/2]
  const Tensor cosine = angle.cos().to(x.scalar_type());
  const Tensor sine = angle.sin().to(x.scalar_type());
  const Tensor a = x.slice(3, 0, half);
  const Tensor b = x.slice(3, half);
  return at::cat({a * cosine - b * sine, b * cosine + a * sine}, 3);
}

}  // namespace headshare
