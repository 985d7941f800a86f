// These are the functions of tiles.h for rows of any length, whatever they hold: scaling, dot products, transposes and
// bf16. They are compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_ROWS_INL_H_
#undef HEADSHARE_KERNELS_ROWS_INL_H_
#else
#define HEADSHARE_KERNELS_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

void scaled_rows(const float* x, int64_t stride, int64_t rows, int64_t columns, const float* factor, float* out,
                 int64_t out_stride, bool accumulate) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    const auto f = hn::Set(d, factor[r]);
    const float* from = x + r * stride;
    float* to = out + r * out_stride;
    int64_t c = 0;
    for (; c + step <= columns; c += step) {
      const auto value = hn::LoadU(d, from + c);
      hn::StoreU(accumulate ? hn::MulAdd(value, f, hn::LoadU(d, to + c)) : hn::Mul(value, f), d, to + c);
    }
    for (; c < columns; ++c) to[c] = from[c] * factor[r] + (accumulate ? to[c] : 0);
  }
}

HWY_INLINE FloatVec widened(const float* x) { return hn::LoadU(F(), x); }
HWY_INLINE FloatVec widened(const Bf16* x) {
  const U u;
  const hn::Rebind<uint16_t, U> half;
  const auto bits = hn::PromoteTo(u, hn::LoadU(half, reinterpret_cast<const uint16_t*>(x)));
  return hn::BitCast(F(), hn::ShiftLeft<16>(bits));
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
HWY_INLINE void store_sums(FloatVec s0, FloatVec s1, FloatVec s2, FloatVec s3, float* sums) {
  const F d;
  sums[0] = hn::GetLane(hn::SumOfLanes(d, s0));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, s2));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, s3));
}
#else
// Returns the sum of a vector's blocks of 128 bits.
template <class D>
HWY_INLINE auto sum_of_blocks(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Stores the sums of the lanes of four vectors, which are added up together: alone each would take as many steps.
HWY_INLINE void store_sums(FloatVec s0, FloatVec s1, FloatVec s2, FloatVec s3, float* sums) {
  const F d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<F> > pair;
  const auto a = hn::BitCast(pair, hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1)));  // 0 1 0 1
  const auto b = hn::BitCast(pair, hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3)));
  const auto all = hn::Add(hn::BitCast(d, hn::InterleaveLower(pair, a, b)),
                           hn::BitCast(d, hn::InterleaveUpper(pair, a, b)));  // 0 1 2 3
  hn::StoreU(sum_of_blocks(d, all), hn::FixedTag<float, 4>(), sums);
}
#endif

// The loop takes four rows at a time: their additions do not wait for each other.
template <typename T>
void dots(const T* x, int64_t stride, const T* y, int64_t y_stride, int64_t rows, int64_t width, float* out) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; r += 4) {
    // The last row is done again where fewer than four are left.
    const T *a[4], *b[4];
    for (int64_t k = 0; k < 4; ++k) {
      a[k] = x + std::min(r + k, rows - 1) * stride;
      b[k] = y + std::min(r + k, rows - 1) * y_stride;
    }
    FloatVec s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t c = 0;
    for (; c + step <= width; c += step) {
      s0 = hn::MulAdd(widened(a[0] + c), widened(b[0] + c), s0);
      s1 = hn::MulAdd(widened(a[1] + c), widened(b[1] + c), s1);
      s2 = hn::MulAdd(widened(a[2] + c), widened(b[2] + c), s2);
      s3 = hn::MulAdd(widened(a[3] + c), widened(b[3] + c), s3);
    }
    float sums[4];
    store_sums(s0, s1, s2, s3, sums);
    for (int64_t k = 0; k < 4 && r + k < rows; ++k) {
      for (int64_t i = c; i < width; ++i) sums[k] += to_float(a[k][i]) * to_float(b[k][i]);
      out[r + k] = sums[k];
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kBlockRows = 1, kBlockColumns = 1;
HWY_INLINE void transpose_block(const float* x, int64_t, float* out, int64_t) { std::memcpy(out, x, sizeof(float)); }
#else
// This is the widest vector whose size the compiler knows.
using Wide = hn::FixedTag<float, HWY_HAVE_SCALABLE ? 4 : HWY_MAX_BYTES / sizeof(float)>;
constexpr int64_t kBlockRows = hn::MaxLanes(Wide()), kBlockColumns = 4;

// Returns four columns of the rows 0, 4, 8, ...
template <class D>
HWY_INLINE hn::Vec<D> every_fourth_row(D d, const float* x, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<D> half;
    const float* upper = x + static_cast<int64_t>(hn::MaxLanes(half)) * stride;
    return hn::Combine(d, every_fourth_row(half, upper, stride), every_fourth_row(half, x, stride));
  }
}

// Transposes as many rows as a vector has lanes, four columns: in every 128 bits 4 x 4 values, whose pairs of rows are
// interleaved twice.
HWY_INLINE void transpose_block(const float* x, int64_t stride, float* out, int64_t out_stride) {
  const Wide d;
  const auto r0 = every_fourth_row(d, x, stride);
  const auto r1 = every_fourth_row(d, x + stride, stride);
  const auto r2 = every_fourth_row(d, x + 2 * stride, stride);
  const auto r3 = every_fourth_row(d, x + 3 * stride, stride);
  const auto even_low = hn::InterleaveLower(d, r0, r2);  // 00 20 01 21
  const auto odd_low = hn::InterleaveLower(d, r1, r3);   // 10 30 11 31
  const auto even_high = hn::InterleaveUpper(d, r0, r2);
  const auto odd_high = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, out);
  hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, out + out_stride);
  hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, out + 2 * out_stride);
  hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, out + 3 * out_stride);
}
#endif

// The outer loop goes over blocks of rows: a line of x is used up while it is in the first-level cache.
void transpose(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out, int64_t out_stride) {
  const int64_t whole_rows = rows / kBlockRows * kBlockRows;
  const int64_t whole_columns = columns / kBlockColumns * kBlockColumns;
  for (int64_t r = 0; r < whole_rows; r += kBlockRows) {
    for (int64_t c = 0; c < whole_columns; c += kBlockColumns) {
      transpose_block(x + r * stride + c, stride, out + c * out_stride + r, out_stride);
    }
  }
  const auto copy = [&](int64_t r, int64_t c) {
    // The values are copied as bytes: they may be pairs of bf16 at any even address.
    std::memcpy(out + c * out_stride + r, x + r * stride + c, sizeof(float));
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) copy(r, c);
  }
}

void narrow(const float* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    Bf16* to = out + r * out_stride;
    int64_t c = 0;
    for (; c + step <= columns; c += step) store_narrowed(hn::LoadU(d, x + r * stride + c), to + c);
    for (; c < columns; ++c) to[c] = to_bf16(x[r * stride + c]);
  }
}

HWY_INLINE void store_as(FloatVec v, float* to) { hn::StoreU(v, F(), to); }
HWY_INLINE void store_as(FloatVec v, Bf16* to) { store_narrowed(v, to); }

void store_as(float v, float* to) { *to = v; }
void store_as(float v, Bf16* to) { *to = to_bf16(v); }

template <typename T>
void rotate(const T* x, int64_t stride, int64_t rows, int64_t half, const float* cosine, const float* sine, T* out,
            int64_t out_stride) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * stride;
    T* to = out + r * out_stride;
    int64_t i = 0;
    for (; i + step <= half; i += step) {
      const auto a = widened(from + i), b = widened(from + half + i);
      const auto c = hn::LoadU(d, cosine + i), s = hn::LoadU(d, sine + i);
      store_as(hn::NegMulAdd(b, s, hn::Mul(a, c)), to + i);
      store_as(hn::MulAdd(a, s, hn::Mul(b, c)), to + half + i);
    }
    for (; i < half; ++i) {
      const float a = to_float(from[i]), b = to_float(from[half + i]);
      store_as(a * cosine[i] - b * sine[i], to + i);
      store_as(b * cosine[i] + a * sine[i], to + half + i);
    }
  }
}

// Returns a vector of values as bits whose upper halves are the bf16 values.
hn::VFromD<U> upper_halves(const float* x) { return rounded_bits(hn::LoadU(F(), x)); }
hn::VFromD<U> upper_halves(const Bf16* x) { return hn::BitCast(U(), widened(x)); }

Bf16 narrowed(float x) { return to_bf16(x); }
Bf16 narrowed(Bf16 x) { return x; }

template <typename T>
void pairs(const T* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride) {
  const F d;
  const U u;
  const auto step = static_cast<int64_t>(hn::Lanes(u));
  for (int64_t r = 0; r < rows; r += 2) {
    const T* first = x + r * stride;
    const T* second = r + 1 < rows ? first + stride : nullptr;
    Bf16* to = out + r * out_stride;
    int64_t c = 0;
    for (; c + step <= columns; c += step) {
      const auto low = hn::ShiftRight<16>(upper_halves(first + c));
      const auto high = second == nullptr ? hn::Zero(u) : upper_halves(second + c);
      const auto pair = hn::Or(low, hn::And(high, hn::Set(u, 0xFFFF0000U)));
      hn::StoreU(hn::BitCast(d, pair), d, reinterpret_cast<float*>(to + 2 * c));
    }
    for (; c < columns; ++c) {
      to[2 * c] = narrowed(first[c]);
      to[2 * c + 1] = second == nullptr ? Bf16{0} : narrowed(second[c]);
    }
  }
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
