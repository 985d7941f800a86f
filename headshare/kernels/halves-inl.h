// These are the bodies behind halves.h, compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_HALVES_INL_H_
#undef HEADSHARE_KERNELS_HALVES_INL_H_
#else
#define HEADSHARE_KERNELS_HALVES_INL_H_
#endif

#include <cmath>

#include "headshare/kernels/halves.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

constexpr uint32_t kUpperBits = 0xFFFF0000U;

// The upper halves of these bits are u and l; the lower halves of u are clear.
struct HalfBits {
  hn::Vec<U> u, l;
};

HWY_INLINE HalfBits half_bits(FloatVec x) {
  const F d;
  const auto u = hn::And(rounded_bits(x), hn::Set(U(), kUpperBits));
  const auto upper = hn::BitCast(d, u);
  const auto finite = hn::Lt(hn::Abs(upper), hn::Set(d, -kHidden));
  return {u, rounded_bits(hn::IfThenElseZero(finite, hn::Sub(x, upper)))};
}

struct Half {
  Bf16 u, l;
};

inline Half half(float x) {
  const Bf16 u = to_bf16(x);
  const float upper = to_float(u);
  return {u, to_bf16(std::isfinite(upper) ? x - upper : 0.0F)};
}

void left(const float* x, int64_t stride, int64_t rows, int64_t depth, Bf16* out, int64_t out_stride) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const int64_t even = depth_in_halves(depth) / 3;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * stride;
    Bf16* to = out + r * out_stride;
    int64_t k = 0;
    for (; k + step <= depth; k += step) {
      const HalfBits bits = half_bits(hn::LoadU(d, from + k));
      store_upper(bits.u, to + k);
      store_upper(bits.l, to + even + k);
      store_upper(bits.u, to + 2 * even + k);
    }
    for (; k < even; ++k) {
      const Half one = half(k < depth ? from[k] : 0.0F);
      to[k] = to[2 * even + k] = one.u;
      to[even + k] = one.l;
    }
  }
}

// Returns the pairs of numbers of two rows, the first row's in the lower halves.
HWY_INLINE hn::Vec<U> paired(hn::Vec<U> first, hn::Vec<U> second) {
  return hn::Or(hn::ShiftRight<16>(first), hn::And(second, hn::Set(U(), kUpperBits)));
}

void right(const float* x, int64_t stride, int64_t depth, int64_t columns, Bf16* out, int64_t out_stride) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const int64_t third = depth_in_halves(depth) / 3 * out_stride;
  for (int64_t k = 0; k < depth; k += 2) {
    const float* first = x + k * stride;
    const float* second = k + 1 < depth ? first + stride : nullptr;
    Bf16* to = out + k * out_stride;
    int64_t c = 0;
    for (; c + step <= columns; c += step) {
      const HalfBits a = half_bits(hn::LoadU(d, first + c));
      const HalfBits b = half_bits(second == nullptr ? hn::Zero(d) : hn::LoadU(d, second + c));
      const auto u = hn::BitCast(d, paired(a.u, b.u));
      hn::StoreU(u, d, reinterpret_cast<float*>(to + 2 * c));
      hn::StoreU(u, d, reinterpret_cast<float*>(to + third + 2 * c));
      hn::StoreU(hn::BitCast(d, paired(a.l, b.l)), d, reinterpret_cast<float*>(to + 2 * third + 2 * c));
    }
    for (; c < columns; ++c) {
      const Half a = half(first[c]), b = half(second == nullptr ? 0.0F : second[c]);
      to[2 * c] = to[third + 2 * c] = a.u;
      to[2 * c + 1] = to[third + 2 * c + 1] = b.u;
      to[2 * third + 2 * c] = a.l;
      to[2 * third + 2 * c + 1] = b.l;
    }
  }
}

const Halves* halves_table() {
  static const Halves table = {left, right};
  return &table;
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
