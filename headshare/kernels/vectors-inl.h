// Vectors of floats have these functions, which are used everywhere, once for each instruction set.
#if defined(HEADSHARE_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_VECTORS_INL_H_
#undef HEADSHARE_KERNELS_VECTORS_INL_H_
#else
#define HEADSHARE_KERNELS_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, kLaneStep>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using FloatVec = hn::Vec<F>;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Returns the larger of x and a constant; NaN where x is: x86 returns the second operand then, portable code the
// number.
HWY_INLINE FloatVec at_least(FloatVec x, float least) {
  const auto limit = hn::Set(F(), least);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(limit, x);
#else
  return hn::IfThenElse(hn::Lt(x, limit), limit, x);
#endif
}

// Returns 2^x with a relative error below 2.4e-7 for x < 127.5, from where it is infinite; zero below 2^-126. 2^n goes
// into the exponent bits, and 2^f for |f| <= 1/2 is a polynomial (minimax for the relative error, 1 at f = 0).
HWY_INLINE FloatVec exp2_of(FloatVec x) {
  const F d;
  const I di;
  x = at_least(x, -127.0F);
  x = hn::IfThenElse(hn::Gt(x, hn::Set(d, 128.0F)), hn::Set(d, 128.0F), x);
  const auto n = hn::Round(x);
  const auto f = hn::Sub(x, n);
  auto p = hn::Set(d, 0.00015353361817880762F);
  p = hn::MulAdd(p, f, hn::Set(d, 0.0013398874445379374F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.009618437358287912F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.05550332471026998F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022647913619743F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931472028551287F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  return hn::Mul(p, hn::BitCast(d, power));
}

// Returns the bits of floats rounded to bf16, in the upper halves; the lower halves are not cleared.
HWY_INLINE hn::Vec<U> rounded_bits(FloatVec x) {
  const U u;
  const auto bits = hn::BitCast(u, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(u, 0x400000));
  return hn::IfThenElse(hn::RebindMask(u, hn::Eq(x, x)), rounded, quiet);
}

// Stores the upper halves of bits, as bf16.
HWY_INLINE void store_upper(hn::Vec<U> bits, Bf16* to) {
  const hn::Rebind<uint16_t, F> half;
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(I(), hn::ShiftRight<16>(bits))), half, reinterpret_cast<uint16_t*>(to));
}

HWY_INLINE void store_narrowed(FloatVec v, Bf16* to) { store_upper(rounded_bits(v), to); }

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
