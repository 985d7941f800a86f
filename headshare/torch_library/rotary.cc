// The rotary operation; its gradient is the rotation back.
#include "headshare/attention/rotary.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/torch_library/glue.h"

namespace headshare::torch_library {
namespace {

// Positions are multiplied as float64, which has every whole number up to here.
constexpr int64_t kLastPosition = int64_t{1} << 52;

Tensor rotate_op(const Tensor& x, int64_t first, double base, int64_t width, int64_t period, bool back) {
  check_floating("a rotation", x);
  HS_CHECK(x.dim() == 4, "a rotation takes [batch, heads, tokens, width], not ", x.sizes());
  HS_CHECK(width >= 2 && width % 2 == 0 && width <= x.size(3), "an even number of the last ", x.size(3),
           " dimensions can turn, not ", width);
  HS_CHECK(period >= 2 && period % 2 == 0 && width % period == 0, "the period of a rotation must be even and divide ",
           width, ", not ", period);
  HS_CHECK(first >= -kLastPosition && first <= kLastPosition - x.size(2), "positions lie between -2^52 and 2^52, not ",
           first, " and ", x.size(2), " further ones");
  HS_CHECK(base > 0, "the base of a rotation must be above 0, not ", base);
  const Tensor like = x.stride(3) == 1 ? x : x.contiguous();
  const RotaryAngles angles{.first = first, .tokens = x.size(2), .width = width, .period = period, .base = base};
  return laid_out_as(rotary_pass(like, angles, back), at::empty_like(like));
}

}  // namespace

static void add_rotary(torch::Library& m) { m.impl("rotate", rotate_op); }
HS_OPERATIONS(add_rotary);

}  // namespace headshare::torch_library
