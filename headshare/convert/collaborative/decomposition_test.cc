#include "headshare/convert/collaborative/decomposition.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/line_search.h"
#include "headshare/ops/layer.h"

namespace headshare {
namespace decomposition_test {

// Maps of 6 heads, 8 wide, of a model 48 wide.
constexpr int64_t kH = 6, kE = 48, kD = 8;

enum class Heads { kIndependent, kSharedSubspace, kFallingSpectrum };

Tensor normal(at::IntArrayRef sizes, uint64_t key, at::ScalarType type = at::kDouble) {
  return at::randn(sizes, keyed_generator(at::kCPU, key), at::TensorOptions(type));
}

Tensor maps(Heads kind, uint64_t key) {
  if (kind == Heads::kSharedSubspace) {
    const Tensor shared = normal({kE, kE / 3}, key).matmul(normal({kH, kE / 3, kD}, key + 1)) / 4;
    return (shared + 0.1 * normal({kH, kE, kD}, key + 2)).unsqueeze(0);
  }
  const Tensor own = normal({kH, kE, kD}, key);
  if (kind == Heads::kIndependent) return own.unsqueeze(0);
  return (own * at::arange(1, kE + 1, at::kDouble).pow(-0.5).unsqueeze(1)).unsqueeze(0);
}

HeadSlices slices(Heads kind, uint64_t key = 1) { return {maps(kind, key), maps(kind, key + 10)}; }

// Several problems of heads one wide with complex maps, as rotary positions pose them.
HeadSlices complex_slices(int64_t width = 1, uint64_t key = 1) {
  return {normal({4, kH, 20, width}, key, at::kComplexDouble), normal({4, kH, 20, width}, key + 1, at::kComplexDouble)};
}

// The slices themselves: [F, H, E, E].
Tensor formed(const HeadSlices& s) { return s.query.matmul(at::adjoint(s.key)); }
Tensor formed(const SharedFactors& f) {
  return (f.query.unsqueeze(1) * f.mixing.unsqueeze(2)).matmul(at::adjoint(f.key.unsqueeze(1)));
}

double formed_error(const HeadSlices& s, const SharedFactors& f) {
  return (at::linalg_vector_norm(formed(s) - formed(f)) / at::linalg_vector_norm(formed(s))).item<double>();
}

// The authors' procedure in the plainest form: all three factors start uniform in [0, 1), a hundred sweeps, every
// unfolding formed.
double plain_als(const HeadSlices& s, int64_t rank, uint64_t key) {
  const Tensor p = formed(s)[0];
  const auto start = [&](int64_t rows, uint64_t part) {
    return at::rand({rows, rank}, keyed_generator(at::kCPU, key + part), at::TensorOptions(at::kDouble));
  };
  Tensor q = start(kE, 0), m = start(kH, 1), k = start(kE, 2);
  const auto solve = [](const Tensor& gram, const Tensor& right) { return at::linalg_solve(gram, right.t()).t(); };
  for (int i = 0; i < 100; ++i) {
    q = solve(m.t().matmul(m) * k.t().matmul(k), at::einsum("hij,hr,jr->ir", {p, m, k}));
    m = solve(q.t().matmul(q) * k.t().matmul(k), at::einsum("hij,ir,jr->hr", {p, q, k}));
    k = solve(q.t().matmul(q) * m.t().matmul(m), at::einsum("hij,ir,hr->jr", {p, q, m}));
  }
  return formed_error(s, {q.unsqueeze(0), m.unsqueeze(0), k.unsqueeze(0)});
}

TEST(BestSteps, AreWherePolynomialsAreLeast) {
  // (s - 2)^2; s^6 - 6 s (least at 1); falls nowhere; constant; two valleys: s (s - 1) (s - 2) (s - 3) is least at 0.38
  // and 2.62, of which a tilt prefers the second.
  const Tensor rows = at::tensor({4.0, -4.0, 1.0,  0.0,  0.0, 0.0, 0.0,  //
                                  0.0, -6.0, 0.0,  0.0,  0.0, 0.0, 1.0,  //
                                  1.0, 1.0,  1.0,  0.0,  0.0, 0.0, 0.0,  //
                                  5.0, 0.0,  0.0,  0.0,  0.0, 0.0, 0.0,  //
                                  0.0, -6.1, 11.0, -6.0, 1.0, 0.0, 0.0},
                                 at::kDouble)
                          .view({5, 7});
  const Tensor steps = best_steps(rows);
  EXPECT_NEAR(steps[0].item<double>(), 2, 1e-9);
  EXPECT_NEAR(steps[1].item<double>(), 1, 1e-9);
  EXPECT_EQ(steps[2].item<double>(), 0);
  EXPECT_EQ(steps[3].item<double>(), 0);
  EXPECT_NEAR(steps[4].item<double>(), 2.62, 0.05);
}

TEST(Decomposition, IsExactAtFullRankBeforeAnyIteration) {
  for (const HeadSlices& s : {slices(Heads::kIndependent), complex_slices(), complex_slices(2)}) {
    const Decomposition result = decompose(s, full_rank(s), {.iterations = 0});
    EXPECT_LT(formed_error(s, result.factors), 1e-12);
    EXPECT_LT(result.error, 1e-7);
    EXPECT_EQ(result.errors.size(), 1U);
  }
}

TEST(Decomposition, ReportsTheErrorOfWhatItGives) {
  for (const HeadSlices& s : {slices(Heads::kFallingSpectrum), complex_slices(), complex_slices(2)}) {
    const int64_t rank = full_rank(s) / 2;
    for (const int64_t iterations : {0, 20}) {
      const Decomposition result = decompose(s, rank, {.iterations = iterations});
      EXPECT_NEAR(result.error, formed_error(s, result.factors), 1e-9);
      EXPECT_EQ(result.error, result.errors.back());
    }
  }
}

TEST(Decomposition, ErrorsNeverRise) {
  for (const HeadSlices& s : {slices(Heads::kSharedSubspace), complex_slices()}) {
    const Decomposition result = decompose(s, full_rank(s) / 2, {.iterations = 60, .tolerance = 0});
    ASSERT_EQ(result.errors.size(), 61U);
    for (size_t i = 1; i < result.errors.size(); ++i) EXPECT_LE(result.errors[i], result.errors[i - 1]);
    EXPECT_LT(result.errors.back(), result.errors.front());
  }
}

TEST(Decomposition, IsNeverWorseThanTheAuthorsProcedure) {
  for (const Heads kind : {Heads::kIndependent, Heads::kSharedSubspace, Heads::kFallingSpectrum}) {
    for (const int64_t rank : {36, 24, 16, 12}) {
      const HeadSlices s = slices(kind);
      const double ours = decompose(s, rank, {}).error;
      for (const uint64_t key : {100, 200}) EXPECT_LE(ours, plain_als(s, rank, key) + 1e-9);
    }
  }
}

TEST(Decomposition, FindsFactorsThatHeadsWereMadeOf) {
  for (const at::ScalarType type : {at::kDouble, at::kComplexDouble}) {
    const Tensor mixing = normal({1, kH, 1, 5}, 3, type);
    const HeadSlices s{normal({1, 1, 20, 5}, 1, type) * mixing,
                       normal({1, 1, 20, 5}, 2, type).expand({1, kH, 20, 5}).contiguous()};
    EXPECT_LT(decompose(s, 5, {.iterations = 1000, .tolerance = 0}).error, 1e-6);
  }
}

TEST(Decomposition, RestartsNeverMakeItWorse) {
  const HeadSlices s = slices(Heads::kSharedSubspace);
  const double once = decompose(s, 12, {.iterations = 20}).error;
  EXPECT_LE(decompose(s, 12, {.iterations = 20, .restarts = 3}).error, once);
}

TEST(Decomposition, StopsWhenAskedWithTheBestSoFar) {
  const HeadSlices s = slices(Heads::kSharedSubspace);
  int64_t reported = 0;
  const Decomposition result = decompose(s, 12, {.restarts = 5}, [&](int64_t iterations, double) {
    reported = iterations;
    return iterations < 7;
  });
  EXPECT_EQ(reported, 7);
  EXPECT_EQ(result.errors.size(), 8U);
  EXPECT_NEAR(result.error, formed_error(s, result.factors), 1e-9);
}

TEST(Decomposition, TakesHeadsThatDependOnEachOther) {
  // Two heads are equal, one is 0, and every map has rank 3.
  Tensor query = normal({1, kH, kE, 3}, 1).matmul(normal({1, kH, 3, kD}, 2));
  query[0][1] = query[0][0];
  query[0][2].zero_();
  const HeadSlices s{query, normal({1, kH, kE, kD}, 3)};
  for (const int64_t rank : {1, 10, 30, 48}) {
    const Decomposition result = decompose(s, rank, {.iterations = 30});
    EXPECT_TRUE(at::isfinite(formed(result.factors)).all().item<bool>());
    EXPECT_NEAR(result.error, formed_error(s, result.factors), 1e-6);
  }
  const HeadSlices nothing{at::zeros_like(query), s.key};
  EXPECT_EQ(decompose(nothing, 4, {}).error, 0);
}

TEST(Decomposition, RefusesWhatIsNotFinite) {
  HeadSlices s = slices(Heads::kIndependent);
  s.key[0][0][0][0] = std::nan("");
  EXPECT_THROW(decompose(s, 4, {}), Error);
  EXPECT_THROW(decompose(slices(Heads::kIndependent), 0, {}), Error);
}

}  // namespace decomposition_test
}  // namespace headshare
