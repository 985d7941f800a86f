// These are the bodies behind tiles.h, compiled once for each instruction set; those of plain rows are in rows-inl.h.
#if defined(HEADSHARE_KERNELS_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_TILES_INL_H_
#undef HEADSHARE_KERNELS_TILES_INL_H_
#else
#define HEADSHARE_KERNELS_TILES_INL_H_
#endif

#include <algorithm>

#include "headshare/kernels/query_lanes-inl.h"
#include "headshare/kernels/query_rows-inl.h"
#include "headshare/kernels/rows-inl.h"
#include "headshare/kernels/tiles.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// Computes the exponents of one strip of lanes, row by row.
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

// This is what a causal mask leaves of a strip: rows [0, whole) are seen by all its lanes, rows [whole, some) by the
// lanes of mask(j), the rest by none.
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
  // Some lanes have seen nothing yet: minus infinity less itself would be NaN.
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

// Computes the product of one round of Philox: the high and low halves of a * multiplier, lane by lane.
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

void exp2(const float* x, int64_t n, float* y) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(exp2_of(hn::LoadU(d, x + i)), d, y + i);
  for (; i < n; ++i) y[i] = hn::GetLane(exp2_of(hn::Set(d, x[i])));
}

const Tiles* tiles_table() {
  static const Tiles table = {softmax_step, weights,     score_gradients, keep_tile,  multiply,     scale_lanes,
                              scaled_lanes, scaled_rows, dots<float>,     dots<Bf16>, query_scores, query_values,
                              lane_scores,  lane_values, softmax_row,     exp2,       transpose,    rotate<float>,
                              rotate<Bf16>, narrow,      pairs<float>,    pairs<Bf16>};
  return &table;
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
