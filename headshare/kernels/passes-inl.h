// These are the bodies behind passes.h, compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_PASSES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_PASSES_INL_H_
#undef HEADSHARE_KERNELS_PASSES_INL_H_
#else
#define HEADSHARE_KERNELS_PASSES_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "headshare/kernels/passes.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// Calls body(first, lanes) for whole vectors of n values, then for what is left.
template <class Body>
HWY_INLINE void each_vector(int64_t n, Body body) {
  const auto step = static_cast<int64_t>(hn::Lanes(F()));
  int64_t i = 0;
  for (; i + step <= n; i += step) body(i, step);
  if (i < n) body(i, n - i);
}

// The last values of a row go through room for a whole vector; zeros stand for those beyond.
HWY_INLINE FloatVec load(const float* x, int64_t lanes) {
  const F d;
  if (lanes == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, x);
  alignas(64) float room[kLaneStep] = {};
  std::copy_n(x, lanes, room);
  return hn::Load(d, room);
}

HWY_INLINE void store(FloatVec v, float* x, int64_t lanes) {
  const F d;
  if (lanes == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, x);
  alignas(64) float room[kLaneStep];
  hn::Store(v, d, room);
  std::copy_n(room, lanes, x);
}

// GELU by the hyperbolic tangent is x s(u) with the logistic function s and u = k (x + c x^3).
struct TanhGelu {
  static constexpr float kSlope = 1.5957691216F;  // k = 2 sqrt(2 / pi)
  static constexpr float kCube = 0.044715F;       // c

  static HWY_INLINE FloatVec share(FloatVec x) {
    const F d;
    const auto cubic = hn::MulAdd(hn::Mul(hn::Set(d, kCube), hn::Mul(x, x)), x, x);
    const auto power = exp2_of(hn::Mul(hn::Set(d, -kSlope * kLog2e), cubic));
    return hn::Div(hn::Set(d, 1.0F), hn::Add(hn::Set(d, 1.0F), power));
  }

  // Returns s + x s (1 - s) u'.
  static HWY_INLINE FloatVec slope(FloatVec x) {
    const F d;
    const auto s = share(x);
    const auto inner = hn::MulAdd(hn::Set(d, 3 * kSlope * kCube), hn::Mul(x, x), hn::Set(d, kSlope));
    return hn::MulAdd(hn::Mul(hn::Mul(x, s), hn::Sub(hn::Set(d, 1.0F), s)), inner, s);
  }
};

// GELU by the error function is x P(x) with the normal distribution P. Its upper tail at |x| is
//   t exp(-a^2 + p(t)) / 2,  a = |x| / sqrt(2),  t = 1 / (1 + a / 2),
// with a polynomial p of degree 9 that makes the relative error 1.2e-7 everywhere (Numerical Recipes, erfcc).
struct ErfGelu {
  static HWY_INLINE FloatVec share(FloatVec x) {
    const F d;
    const auto a = hn::Mul(hn::Abs(x), hn::Set(d, 0.7071067812F));
    const auto t = hn::Div(hn::Set(d, 1.0F), hn::MulAdd(a, hn::Set(d, 0.5F), hn::Set(d, 1.0F)));
    auto p = hn::Set(d, 0.17087277F);
    for (const float c : {-0.82215223F, 1.48851587F, -1.13520398F, 0.27886807F, -0.18628806F, 0.09678418F, 0.37409196F,
                          1.00002368F, -1.26551223F}) {
      p = hn::MulAdd(p, t, hn::Set(d, c));
    }
    const auto tail =
        hn::Mul(hn::Mul(t, hn::Set(d, 0.5F)), exp2_of(hn::Mul(hn::NegMulAdd(a, a, p), hn::Set(d, kLog2e))));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0F), tail));
  }

  // Returns P + x times the density.
  static HWY_INLINE FloatVec slope(FloatVec x) {
    const F d;
    const auto density = exp2_of(hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F * kLog2e)));
    return hn::MulAdd(hn::Mul(x, hn::Set(d, 0.3989422804F)), density, share(x));
  }
};

template <class Form>
void gelu_of(const float* x, int64_t n, float* y) {
  each_vector(n, [&](int64_t i, int64_t lanes) {
    const auto v = load(x + i, lanes);
    store(hn::Mul(v, Form::share(v)), y + i, lanes);
  });
}

template <class Form>
void gelu_gradient_of(const float* x, const float* dy, int64_t n, float* dx) {
  each_vector(n, [&](int64_t i, int64_t lanes) {
    store(hn::Mul(load(dy + i, lanes), Form::slope(load(x + i, lanes))), dx + i, lanes);
  });
}

void gelu(const float* x, int64_t n, GeluForm form, float* y) {
  form == GeluForm::kTanh ? gelu_of<TanhGelu>(x, n, y) : gelu_of<ErfGelu>(x, n, y);
}

void gelu_gradient(const float* x, const float* dy, int64_t n, GeluForm form, float* dx) {
  form == GeluForm::kTanh ? gelu_gradient_of<TanhGelu>(x, dy, n, dx) : gelu_gradient_of<ErfGelu>(x, dy, n, dx);
}

float largest_of(const float* x, int64_t n) {
  const F d;
  auto largest = hn::Set(d, kHidden);
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + step <= n; i += step) largest = hn::Max(largest, hn::LoadU(d, x + i));
  float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < n; ++i) most = std::max(most, x[i]);
  return most;
}

// The loop adds up two sums at a time: one would wait for itself. Blocks are added up in double, so that the length of
// a row does not show in the rounding.
double cross_entropy(const float* scores, int64_t n, int64_t target, float* slopes) {
  constexpr int64_t kBlock = 1024;
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const float most = largest_of(scores, n);
  const float wanted = scores[target];
  const auto origin = hn::Set(d, most);
  const auto weight = [&](FloatVec x) { return exp2_of(hn::Mul(hn::Sub(x, origin), hn::Set(d, kLog2e))); };
  double total = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t end = std::min(n, first + kBlock);
    auto a = hn::Zero(d), b = hn::Zero(d);
    int64_t i = first;
    for (; i + 2 * step <= end; i += 2 * step) {
      const auto even = weight(hn::LoadU(d, scores + i));
      const auto odd = weight(hn::LoadU(d, scores + i + step));
      a = hn::Add(a, even);
      b = hn::Add(b, odd);
      if (slopes == nullptr) continue;
      hn::StoreU(even, d, slopes + i);
      hn::StoreU(odd, d, slopes + i + step);
    }
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
    for (; i < end; i += step) {
      const int64_t lanes = std::min(step, end - i);
      // Lanes beyond the row are no scores: their weight is not counted.
      const auto w = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(lanes)), weight(load(scores + i, lanes)));
      total += hn::GetLane(hn::SumOfLanes(d, w));
      if (slopes != nullptr) store(w, slopes + i, lanes);
    }
  }
  if (slopes != nullptr) {
    const auto factor = hn::Set(d, static_cast<float>(1 / total));
    each_vector(n,
                [&](int64_t i, int64_t lanes) { store(hn::Mul(load(slopes + i, lanes), factor), slopes + i, lanes); });
    slopes[target] -= 1;
  }
  return std::log(total) + (static_cast<double>(most) - wanted);
}

// The loss follows from the weights w of the scores and v of the teacher's, and their sums W and V:
//   KL = sum_i v_i / V (log(v_i / V) - log(w_i / W)) = sum_i v_i (y_i - x_i) / (V T) - log V + log W,
// x and y less the largest of their rows. Blocks are added up in double.
double divergence(const float* scores, const float* teacher, int64_t n, double temperature, float* slopes) {
  constexpr int64_t kBlock = 1024;
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto highest = hn::Set(d, largest_of(scores, n)), wanted = hn::Set(d, largest_of(teacher, n));
  const auto rate = hn::Set(d, static_cast<float>(static_cast<double>(kLog2e) / temperature));
  const auto weight = [&](FloatVec above) { return exp2_of(hn::Mul(above, rate)); };
  double own = 0, others = 0, apart = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t end = std::min(n, first + kBlock);
    auto w_sum = hn::Zero(d), v_sum = hn::Zero(d), product = hn::Zero(d);
    for (int64_t i = first; i < end; i += step) {
      const int64_t lanes = std::min(step, end - i);
      const auto inside = hn::FirstN(d, static_cast<size_t>(lanes));
      const auto x = hn::Sub(load(scores + i, lanes), highest);
      const auto y = hn::Sub(load(teacher + i, lanes), wanted);
      const auto v = hn::IfThenElseZero(inside, weight(y));
      w_sum = hn::Add(w_sum, hn::IfThenElseZero(inside, weight(x)));
      v_sum = hn::Add(v_sum, v);
      product = hn::MulAdd(v, hn::IfThenElseZero(inside, hn::Sub(y, x)), product);
    }
    own += hn::GetLane(hn::SumOfLanes(d, w_sum));
    others += hn::GetLane(hn::SumOfLanes(d, v_sum));
    apart += hn::GetLane(hn::SumOfLanes(d, product));
  }
  if (slopes != nullptr) {
    // w / W - v / V is computed as (w - v W / V) / W: of equal rows exactly 0, fused or not.
    const auto factor = hn::Set(d, static_cast<float>(1 / own));
    const auto ratio = hn::Set(d, static_cast<float>(own / others));
    each_vector(n, [&](int64_t i, int64_t lanes) {
      const auto w = weight(hn::Sub(load(scores + i, lanes), highest));
      const auto v = weight(hn::Sub(load(teacher + i, lanes), wanted));
      store(hn::Mul(hn::NegMulAdd(v, ratio, w), factor), slopes + i, lanes);
    });
  }
  return apart / (others * temperature) + std::log(own / others);
}

// Returns the sum over a row of what `term` gives for vectors, which must be 0 where x beyond the row is.
template <class Term>
HWY_INLINE double row_sum(int64_t n, Term term) {
  const F d;
  auto sum = hn::Zero(d);
  each_vector(n, [&](int64_t i, int64_t lanes) { sum = hn::Add(sum, term(i, lanes)); });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float rms_norm(const float* x, const float* weight, int64_t n, float eps, float* y) {
  const F d;
  const double squares = row_sum(n, [&](int64_t i, int64_t lanes) {
    const auto v = load(x + i, lanes);
    return hn::Mul(v, v);
  });
  const auto inverse = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
  const auto factor = hn::Set(d, inverse);
  each_vector(n, [&](int64_t i, int64_t lanes) {
    store(hn::Mul(hn::Mul(load(x + i, lanes), factor), load(weight + i, lanes)), y + i, lanes);
  });
  return inverse;
}

void rms_norm_gradient(const float* x, const float* weight, const float* dy, int64_t n, float inverse, float* dx,
                       float* dweight) {
  const F d;
  const double along = row_sum(n, [&](int64_t i, int64_t lanes) {
    return hn::Mul(hn::Mul(load(dy + i, lanes), load(weight + i, lanes)), load(x + i, lanes));
  });
  const auto factor = hn::Set(d, inverse);
  const auto pull = hn::Set(d, static_cast<float>(along / static_cast<double>(n) * inverse * inverse));
  each_vector(n, [&](int64_t i, int64_t lanes) {
    const auto v = load(x + i, lanes);
    const auto slope = load(dy + i, lanes);
    store(hn::MulAdd(hn::Mul(slope, v), factor, load(dweight + i, lanes)), dweight + i, lanes);
    const auto inner = hn::NegMulAdd(v, pull, hn::Mul(slope, load(weight + i, lanes)));
    store(hn::Mul(inner, factor), dx + i, lanes);
  });
}

const Passes* passes_table() {
  static const Passes table = {gelu, gelu_gradient, cross_entropy, divergence, rms_norm, rms_norm_gradient};
  return &table;
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
