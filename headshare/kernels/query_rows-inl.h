// A few queries lie in rows, and keys and values are used where they lie: a row of keys or values that is in registers
// meets two queries. Compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_QUERY_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_QUERY_ROWS_INL_H_
#undef HEADSHARE_KERNELS_QUERY_ROWS_INL_H_
#else
#define HEADSHARE_KERNELS_QUERY_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "headshare/kernels/rows-inl.h"
#include "headshare/kernels/tiles.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// The loop takes four keys at a time: their sums do not wait for each other. Without kTwo, y1 and out1 are not read.
template <bool kTwo>
HWY_INLINE void scores_of(const Rows<float>& keys, const float* y0, const float* y1, float* out0, float* out1) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < keys.count; r += 4) {
    // The last key is done again where fewer than four are left.
    const float* x[4];
    for (int64_t k = 0; k < 4; ++k) x[k] = keys.data + std::min(r + k, keys.count - 1) * keys.stride;
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    int64_t c = 0;
    for (; c + step <= keys.width; c += step) {
      const auto x0 = hn::LoadU(d, x[0] + c), x1 = hn::LoadU(d, x[1] + c);
      const auto x2 = hn::LoadU(d, x[2] + c), x3 = hn::LoadU(d, x[3] + c);
      const auto y = hn::LoadU(d, y0 + c);
      s0 = hn::MulAdd(x0, y, s0);
      s1 = hn::MulAdd(x1, y, s1);
      s2 = hn::MulAdd(x2, y, s2);
      s3 = hn::MulAdd(x3, y, s3);
      if constexpr (kTwo) {
        const auto z = hn::LoadU(d, y1 + c);
        t0 = hn::MulAdd(x0, z, t0);
        t1 = hn::MulAdd(x1, z, t1);
        t2 = hn::MulAdd(x2, z, t2);
        t3 = hn::MulAdd(x3, z, t3);
      }
    }
    const auto finish = [&](float* sums, const float* y, float* out) {
      for (int64_t k = 0; k < 4 && r + k < keys.count; ++k) {
        for (int64_t i = c; i < keys.width; ++i) sums[k] += x[k][i] * y[i];
        out[r + k] = sums[k];
      }
    };
    float sums[4];
    store_sums(s0, s1, s2, s3, sums);
    finish(sums, y0, out0);
    if constexpr (kTwo) {
      store_sums(t0, t1, t2, t3, sums);
      finish(sums, y1, out1);
    }
  }
}

void query_scores(const Rows<float>& keys, const float* queries, int64_t query_stride, int64_t count, float* out,
                  int64_t out_stride) {
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const float* y = queries + i * query_stride;
    scores_of<true>(keys, y, y + query_stride, out + i * out_stride, out + (i + 1) * out_stride);
  }
  if (i < count) scores_of<false>(keys, queries + i * query_stride, nullptr, out + i * out_stride, nullptr);
}

// Adds up columns c .. c + 4 vectors. With kTwo b is the second query's sum, else that of every second row.
template <bool kTwo>
HWY_INLINE void add_four(const Rows<float>& values, const float* w0, const float* w1, int64_t c, float* out0,
                         float* out1) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = hn::LoadU(d, out0 + c), a1 = hn::LoadU(d, out0 + c + step);
  auto a2 = hn::LoadU(d, out0 + c + 2 * step), a3 = hn::LoadU(d, out0 + c + 3 * step);
  auto b0 = hn::Zero(d), b1 = b0, b2 = b0, b3 = b0;
  if constexpr (kTwo) {
    b0 = hn::LoadU(d, out1 + c);
    b1 = hn::LoadU(d, out1 + c + step);
    b2 = hn::LoadU(d, out1 + c + 2 * step);
    b3 = hn::LoadU(d, out1 + c + 3 * step);
  }
  constexpr int64_t kAtOnce = kTwo ? 1 : 2;
  int64_t r = 0;
  for (; r + kAtOnce <= values.count; r += kAtOnce) {
    const float* x = values.data + r * values.stride + c;
    const float* z = kTwo ? x : x + values.stride;
    const auto w = hn::Set(d, w0[r]), v = hn::Set(d, kTwo ? w1[r] : w0[r + 1]);
    a0 = hn::MulAdd(w, hn::LoadU(d, x), a0);
    a1 = hn::MulAdd(w, hn::LoadU(d, x + step), a1);
    a2 = hn::MulAdd(w, hn::LoadU(d, x + 2 * step), a2);
    a3 = hn::MulAdd(w, hn::LoadU(d, x + 3 * step), a3);
    b0 = hn::MulAdd(v, hn::LoadU(d, z), b0);
    b1 = hn::MulAdd(v, hn::LoadU(d, z + step), b1);
    b2 = hn::MulAdd(v, hn::LoadU(d, z + 2 * step), b2);
    b3 = hn::MulAdd(v, hn::LoadU(d, z + 3 * step), b3);
  }
  if (r < values.count) {
    const float* x = values.data + r * values.stride + c;
    const auto w = hn::Set(d, w0[r]);
    a0 = hn::MulAdd(w, hn::LoadU(d, x), a0);
    a1 = hn::MulAdd(w, hn::LoadU(d, x + step), a1);
    a2 = hn::MulAdd(w, hn::LoadU(d, x + 2 * step), a2);
    a3 = hn::MulAdd(w, hn::LoadU(d, x + 3 * step), a3);
  }
  if constexpr (kTwo) {
    hn::StoreU(b0, d, out1 + c);
    hn::StoreU(b1, d, out1 + c + step);
    hn::StoreU(b2, d, out1 + c + 2 * step);
    hn::StoreU(b3, d, out1 + c + 3 * step);
  } else {
    a0 = hn::Add(a0, b0);
    a1 = hn::Add(a1, b1);
    a2 = hn::Add(a2, b2);
    a3 = hn::Add(a3, b3);
  }
  hn::StoreU(a0, d, out0 + c);
  hn::StoreU(a1, d, out0 + c + step);
  hn::StoreU(a2, d, out0 + c + 2 * step);
  hn::StoreU(a3, d, out0 + c + 3 * step);
}

// Adds up the columns from c on, fewer than four vectors, for one query.
HWY_INLINE void add_rest(const Rows<float>& values, const float* weight, int64_t c, float* out) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (; c + step <= values.width; c += step) {
    auto sum = hn::LoadU(d, out + c);
    for (int64_t r = 0; r < values.count; ++r) {
      sum = hn::MulAdd(hn::Set(d, weight[r]), hn::LoadU(d, values.data + r * values.stride + c), sum);
    }
    hn::StoreU(sum, d, out + c);
  }
  for (; c < values.width; ++c) {
    for (int64_t r = 0; r < values.count; ++r) out[c] += weight[r] * values.data[r * values.stride + c];
  }
}

void query_values(const Rows<float>& values, const float* weights, int64_t weight_stride, int64_t count, float* out,
                  int64_t out_stride) {
  const int64_t four = 4 * static_cast<int64_t>(hn::Lanes(F()));
  const int64_t whole = values.width / four * four;
  for (int64_t i = 0; i < count; i += 2) {
    const float* w = weights + i * weight_stride;
    float* to = out + i * out_stride;
    const bool two = i + 1 < count;
    for (int64_t c = 0; c < whole; c += four) {
      if (two) {
        add_four<true>(values, w, w + weight_stride, c, to, to + out_stride);
      } else {
        add_four<false>(values, w, nullptr, c, to, nullptr);
      }
    }
    add_rest(values, w, whole, to);
    if (two) add_rest(values, w + weight_stride, whole, to + out_stride);
  }
}

// Turns scores into exponents and returns the largest, but for NaN.
HWY_INLINE float exponents_of_row(float* row, int64_t keys, const ScoreRule& rule) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto hidden = hn::Set(d, kHidden), scale = hn::Set(d, rule.scale), slope = hn::Set(d, rule.slope);
  auto best = hidden;
  for (int64_t j = 0; j < round_up(keys, kLaneStep); j += step) {
    auto e = hn::Mul(hn::LoadU(d, row + j), scale);
    if (rule.slope != 0) {
      e = hn::NegMulAdd(slope, hn::Sub(hn::Set(d, rule.distance), hn::Iota(d, static_cast<float>(j))), e);
    }
    if (rule.key_bias != nullptr) e = hn::Add(e, hn::LoadU(d, rule.key_bias + j));
    if (j + step > keys)
      e = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(keys - j, 0))), e, hidden);
    hn::StoreU(e, d, row + j);
    best = hn::IfThenElse(hn::Lt(best, e), e, best);
  }
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

float softmax_row(float* row, int64_t keys, const ScoreRule& rule, float* m, float* l) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const int64_t lanes = round_up(keys, kLaneStep);
  const float before = *m;
  *m = std::max(before, exponents_of_row(row, keys, rule));
  if (*m == kHidden && std::count(row, row + keys, kHidden) == keys) {  // a NaN is not hidden
    std::fill(row, row + lanes, 0.0F);
    return 1;
  }
  const auto most = hn::Set(d, *m);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < lanes; j += step) {
    const auto weight = exp2_of(hn::Sub(hn::LoadU(d, row + j), most));
    hn::StoreU(weight, d, row + j);
    sum = hn::Add(sum, weight);
  }
  const float fade = std::exp2(before - *m);
  *l = *l * fade + hn::GetLane(hn::SumOfLanes(d, sum));
  return fade;
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
