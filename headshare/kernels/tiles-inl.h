// The bodies behind tiles.h, compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_TILES_INL_H_
#undef HEADSHARE_KERNELS_TILES_INL_H_
#else
#define HEADSHARE_KERNELS_TILES_INL_H_
#endif

#include <algorithm>

#include "headshare/kernels/tiles.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// The exponents of one strip of lanes, row by row.
template <bool kDistance>
struct Exponents {
  const Tile& tile;
  const ScoreRule& rule;
  int64_t strip;
  FloatVec scale, slope, position;

  Exponents(const Tile& t, const ScoreRule& r, int64_t first_lane) : tile(t), rule(r), strip(first_lane) {
    const F d;
    scale = hn::Set(d, r.scale);
    slope = hn::Set(d, r.slope);
    position = hn::Add(hn::Set(d, r.distance), hn::Iota(d, static_cast<float>(first_lane)));
  }

  HWY_INLINE FloatVec operator()(int64_t j) const {
    const F d;
    const auto bias = hn::Set(d, rule.key_bias != nullptr ? rule.key_bias[j] : 0.0F);
    const auto e = hn::MulAdd(hn::Load(d, tile.data + j * tile.stride + strip), scale, bias);
    if constexpr (!kDistance) return e;
    return hn::NegMulAdd(slope, hn::Abs(hn::Sub(position, hn::Set(d, static_cast<float>(j)))), e);
  }
};

// What a causal mask leaves of a strip: rows [0, whole) are seen by all its lanes, rows [whole, some)
// by the lanes of mask(j), the rest by none.
struct Visible {
  int64_t whole, some;
  int64_t offset;  // lane >= j + offset sees row j

  Visible(const Tile& tile, const ScoreRule& rule, int64_t strip) : whole(tile.keys), some(tile.keys), offset(0) {
    if (!rule.causal) return;
    offset = rule.diagonal - strip;
    whole = std::clamp<int64_t>(1 - offset, 0, tile.keys);
    some = std::clamp<int64_t>(static_cast<int64_t>(hn::Lanes(F())) - offset, 0, tile.keys);
  }

  HWY_INLINE hn::Mask<F> mask(int64_t j) const {
    const I di;
    return hn::RebindMask(F(), hn::Gt(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(j + offset - 1))));
  }
};

template <bool kDistance>
bool softmax_strip(const Tile& tile, const ScoreRule& rule, int64_t strip, float* m, float* l, float* fade) {
  const F d;
  const Exponents<kDistance> exponent(tile, rule, strip);
  const Visible visible(tile, rule, strip);
  const auto hidden = hn::Set(d, kHidden);
  auto largest = hidden;
  for (int64_t j = 0; j < visible.whole; ++j) largest = hn::Max(largest, exponent(j));
  for (int64_t j = visible.whole; j < visible.some; ++j) {
    largest = hn::Max(largest, hn::IfThenElse(visible.mask(j), exponent(j), hidden));
  }
  const auto before = hn::Load(d, m + strip);
  const auto moves = hn::Gt(largest, hn::Add(before, hn::Set(d, rule.slack)));
  const auto now = hn::IfThenElse(moves, largest, before);
  // Lanes that have seen nothing yet: minus infinity less itself would be NaN.
  const auto base = hn::IfThenZeroElse(hn::Eq(now, hidden), now);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < visible.whole; ++j) {
    const auto w = exp2_of(hn::Sub(exponent(j), base));
    sum = hn::Add(sum, w);
    hn::Store(w, d, tile.data + j * tile.stride + strip);
  }
  for (int64_t j = visible.whole; j < visible.some; ++j) {
    const auto w = hn::IfThenElseZero(visible.mask(j), exp2_of(hn::Sub(exponent(j), base)));
    sum = hn::Add(sum, w);
    hn::Store(w, d, tile.data + j * tile.stride + strip);
  }
  for (int64_t j = visible.some; j < tile.keys; ++j) hn::Store(hn::Zero(d), d, tile.data + j * tile.stride + strip);
  const auto factor = exp2_of(hn::Sub(before, base));
  hn::Store(now, d, m + strip);
  hn::Store(hn::MulAdd(hn::Load(d, l + strip), factor, sum), d, l + strip);
  hn::Store(factor, d, fade + strip);
  return !hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)));
}

bool softmax_step(const Tile& tile, const ScoreRule& rule, float* m, float* l, float* fade) {
  bool moved = false;
  for (int64_t strip = 0; strip < tile.lanes; strip += static_cast<int64_t>(hn::Lanes(F()))) {
    moved |= rule.slope != 0 ? softmax_strip<true>(tile, rule, strip, m, l, fade)
                             : softmax_strip<false>(tile, rule, strip, m, l, fade);
  }
  return moved;
}

template <bool kDistance>
void weights_strip(const Tile& tile, const ScoreRule& rule, int64_t strip, const float* lse) {
  const F d;
  const Exponents<kDistance> exponent(tile, rule, strip);
  const Visible visible(tile, rule, strip);
  const auto base = hn::Load(d, lse + strip);
  for (int64_t j = 0; j < visible.whole; ++j) {
    hn::Store(exp2_of(hn::Sub(exponent(j), base)), d, tile.data + j * tile.stride + strip);
  }
  for (int64_t j = visible.whole; j < visible.some; ++j) {
    const auto w = hn::IfThenElseZero(visible.mask(j), exp2_of(hn::Sub(exponent(j), base)));
    hn::Store(w, d, tile.data + j * tile.stride + strip);
  }
  for (int64_t j = visible.some; j < tile.keys; ++j) hn::Store(hn::Zero(d), d, tile.data + j * tile.stride + strip);
}

void weights(const Tile& tile, const ScoreRule& rule, const float* lse) {
  for (int64_t strip = 0; strip < tile.lanes; strip += static_cast<int64_t>(hn::Lanes(F()))) {
    if (rule.slope != 0) {
      weights_strip<true>(tile, rule, strip, lse);
    } else {
      weights_strip<false>(tile, rule, strip, lse);
    }
  }
}

void score_gradients(const Tile& weights, const Tile& gradients, const float* keep, const float* delta, float scale,
                     float* sums) {
  const F d;
  const auto factor = hn::Set(d, scale);
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < weights.keys; ++j) {
    float* w_row = weights.data + j * weights.stride;
    float* g_row = gradients.data + j * gradients.stride;
    auto sum = hn::Zero(d);
    for (int64_t lane = 0; lane < weights.lanes; lane += step) {
      const auto w = hn::Load(d, w_row + lane);
      auto g = hn::Load(d, g_row + lane);
      if (keep != nullptr) {
        const auto kept = hn::Load(d, keep + j * weights.lanes + lane);
        g = hn::Mul(g, kept);
        hn::Store(hn::Mul(w, kept), d, w_row + lane);
      }
      g = hn::Mul(hn::Mul(w, factor), hn::Sub(g, hn::Load(d, delta + lane)));
      sum = hn::Add(sum, g);
      hn::Store(g, d, g_row + lane);
    }
    if (sums != nullptr) sums[j] += hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// One round of Philox: the high and low halves of a * multiplier, lane by lane.
HWY_INLINE void wide_product(hn::Vec<U> a, uint32_t multiplier, hn::Vec<U>* high, hn::Vec<U>* low) {
  const U u;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = static_cast<uint64_t>(hn::GetLane(a)) * multiplier;
  *high = hn::Set(u, static_cast<uint32_t>(product >> 32));
  *low = hn::Set(u, static_cast<uint32_t>(product));
#else
  const hn::RepartitionToWide<U> wide;
  const auto m = hn::Set(u, multiplier);
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(u, hn::ShiftRight<32>(hn::BitCast(wide, a))), m);
  *high = hn::OddEven(hn::BitCast(u, odd), hn::BitCast(u, hn::ShiftRight<32>(even)));
  *low = hn::OddEven(hn::BitCast(u, hn::ShiftLeft<32>(odd)), hn::BitCast(u, even));
#endif
}

struct PhiloxLanes {
  hn::Vec<U> c0, c1, c2, c3;
};

HWY_INLINE void philox(PhiloxLanes& c, uint64_t key) {
  const U u;
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kMaskRounds; ++round) {
    hn::Vec<U> high0, low0, high1, low1;
    wide_product(c.c0, 0xD2511F53U, &high0, &low0);
    wide_product(c.c2, 0xCD9E8D57U, &high1, &low1);
    c.c0 = hn::Xor(hn::Xor(high1, c.c1), hn::Set(u, k0));
    c.c1 = low1;
    c.c2 = hn::Xor(hn::Xor(high0, c.c3), hn::Set(u, k1));
    c.c3 = low0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// Stores what the two 16-bit halves of `word` say about keys `row` and `row + 1`, if the tile has them.
HWY_INLINE void keep_pair(hn::Vec<U> word, const DropoutMask& mask, int64_t row, int64_t keys, int64_t lanes,
                          float* keep) {
  const F d;
  const U u;
  const I di;
  const auto threshold = hn::Set(di, static_cast<int32_t>(mask.threshold));
  const auto kept = hn::Set(d, mask.kept_scale());
  const hn::Vec<U> halves[2] = {hn::And(word, hn::Set(u, 0xFFFF)), hn::ShiftRight<16>(word)};
  for (int64_t half = 0; half < 2; ++half) {
    if (row + half < 0 || row + half >= keys) continue;
    const auto dropped = hn::RebindMask(d, hn::Lt(hn::BitCast(di, halves[half]), threshold));
    hn::Store(hn::IfThenZeroElse(dropped, kept), d, keep + (row + half) * lanes);
  }
}

void keep_tile(float* keep, int64_t keys, int64_t lanes, const DropoutMask& mask, int64_t b, int64_t h,
               int64_t first_query, int64_t first_key) {
  const U u;
  for (int64_t group = first_key / 8; group * 8 < first_key + keys; ++group) {
    for (int64_t strip = 0; strip < lanes; strip += static_cast<int64_t>(hn::Lanes(u))) {
      PhiloxLanes c{hn::Iota(u, static_cast<uint32_t>(first_query + strip)), hn::Set(u, static_cast<uint32_t>(group)),
                    hn::Set(u, static_cast<uint32_t>(mask.head(h))), hn::Set(u, static_cast<uint32_t>(b))};
      philox(c, mask.key);
      const int64_t row = group * 8 - first_key;
      keep_pair(c.c0, mask, row, keys, lanes, keep + strip);
      keep_pair(c.c1, mask, row + 2, keys, lanes, keep + strip);
      keep_pair(c.c2, mask, row + 4, keys, lanes, keep + strip);
      keep_pair(c.c3, mask, row + 6, keys, lanes, keep + strip);
    }
  }
}

void multiply(const Tile& x, const float* y) {
  const F d;
  for (int64_t j = 0; j < x.keys; ++j) {
    float* row = x.data + j * x.stride;
    for (int64_t lane = 0; lane < x.lanes; lane += static_cast<int64_t>(hn::Lanes(d))) {
      hn::Store(hn::Mul(hn::Load(d, row + lane), hn::Load(d, y + j * x.lanes + lane)), d, row + lane);
    }
  }
}

void scaled_lanes(const Tile& x, const float* factor, float* out, int64_t out_stride) {
  const F d;
  for (int64_t j = 0; j < x.keys; ++j) {
    for (int64_t lane = 0; lane < x.lanes; lane += static_cast<int64_t>(hn::Lanes(d))) {
      const auto value = hn::Mul(hn::LoadU(d, x.data + j * x.stride + lane), hn::LoadU(d, factor + lane));
      hn::StoreU(value, d, out + j * out_stride + lane);
    }
  }
}

void scale_lanes(const Tile& x, const float* factor) { scaled_lanes(x, factor, x.data, x.stride); }

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

// Four rows at a time: their additions do not wait for each other.
template <typename T>
void dots(const T* x, int64_t stride, const T* y, int64_t y_stride, int64_t rows, int64_t width, float* out) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; r += 4) {
    // Short of four the last row is done again.
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
    float sums[4] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                     hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
    for (int64_t k = 0; k < 4 && r + k < rows; ++k) {
      for (int64_t i = c; i < width; ++i) sums[k] += to_float(a[k][i]) * to_float(b[k][i]);
      out[r + k] = sums[k];
    }
  }
}

void exp2(const float* x, int64_t n, float* y) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(exp2_of(hn::LoadU(d, x + i)), d, y + i);
  for (; i < n; ++i) y[i] = hn::GetLane(exp2_of(hn::Set(d, x[i])));
}

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kBlockRows = 1, kBlockColumns = 1;
HWY_INLINE void transpose_block(const float* x, int64_t, float* out, int64_t) { std::memcpy(out, x, sizeof(float)); }
#else
// The widest vector whose size the compiler knows.
using Wide = hn::FixedTag<float, HWY_HAVE_SCALABLE ? 4 : HWY_MAX_BYTES / sizeof(float)>;
constexpr int64_t kBlockRows = hn::MaxLanes(Wide()), kBlockColumns = 4;

// Four columns of the rows 0, 4, 8, ...
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

// As many rows as a vector has lanes, four columns: in every 128 bits 4 x 4 values, whose pairs of rows are interleaved
// twice.
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

// Blocks of rows outside: a line of x is used up while it is in the first-level cache.
void transpose(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out, int64_t out_stride) {
  const int64_t whole_rows = rows / kBlockRows * kBlockRows;
  const int64_t whole_columns = columns / kBlockColumns * kBlockColumns;
  for (int64_t r = 0; r < whole_rows; r += kBlockRows) {
    for (int64_t c = 0; c < whole_columns; c += kBlockColumns) {
      transpose_block(x + r * stride + c, stride, out + c * out_stride + r, out_stride);
    }
  }
  const auto copy = [&](int64_t r, int64_t c) {
    // As bytes: the values may be pairs of bf16 at any even address.
    std::memcpy(out + c * out_stride + r, x + r * stride + c, sizeof(float));
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) copy(r, c);
  }
}

// The bits of floats rounded to bf16, in the upper halves; the lower halves are not cleared.
HWY_INLINE hn::Vec<U> rounded_bits(FloatVec x) {
  const U u;
  const auto bits = hn::BitCast(u, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(u, 0x400000));
  return hn::IfThenElse(hn::RebindMask(u, hn::Eq(x, x)), rounded, quiet);
}

void narrow(const float* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride) {
  const F d;
  const I di;
  const hn::Rebind<uint16_t, F> half;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    auto* to = reinterpret_cast<uint16_t*>(out + r * out_stride);
    int64_t c = 0;
    for (; c + step <= columns; c += step) {
      const auto bits = hn::ShiftRight<16>(rounded_bits(hn::LoadU(d, x + r * stride + c)));
      hn::StoreU(hn::DemoteTo(half, hn::BitCast(di, bits)), half, to + c);
    }
    for (; c < columns; ++c) to[c] = to_bf16(x[r * stride + c]).bits;
  }
}

// A vector of values as bits whose upper halves are the bf16 values.
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

const Tiles* tiles_table() {
  static const Tiles table = {softmax_step, weights,      score_gradients, keep_tile,    multiply,
                              scale_lanes,  scaled_lanes, scaled_rows,     dots<float>,  dots<Bf16>,
                              exp2,         transpose,    narrow,          pairs<float>, pairs<Bf16>};
  return &table;
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
