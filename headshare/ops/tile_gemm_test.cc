#include "headshare/ops/tile_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headshare/base/rng.h"

namespace headshare {
namespace {

using kernels::Bf16;

struct Shape {
  int64_t M, N, K;
};
// The shapes end before, at and after vectors and pairs.
const Shape kShapes[] = {{1, 1, 1}, {3, 16, 64}, {7, 17, 5}, {64, 64, 64}, {128, 48, 33}, {5, 15, 128}};
// Rows are wider than the matrices.
constexpr int64_t kGap = 3;
constexpr float kUntouched = -7;

std::vector<float> random_values(int64_t count, uint64_t seed) {
  Philox rng(seed);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& one : x) one = kernels::to_float(kernels::to_bf16(static_cast<float>(rng.normal())));
  return x;
}

// A problem holds A, B and what C was before, of values that bf16 has, too.
struct Problem {
  Shape shape;
  std::vector<float> a, b, c;

  explicit Problem(const Shape& s)
      : shape(s),
        a(random_values(s.M * (s.K + kGap), 1)),
        b(random_values(s.K * (s.N + kGap), 2)),
        c(random_values(s.M * (s.N + kGap), 3)) {
    for (int64_t m = 0; m < s.M; ++m) std::fill_n(c.begin() + m * (s.N + kGap) + s.N, kGap, kUntouched);
  }

  void expect_product(const std::vector<float>& actual, bool accumulate) const {
    const auto& [M, N, K] = shape;
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t n = 0; n < N; ++n) {
        double sum = accumulate ? c[m * (N + kGap) + n] : 0;
        double size = std::abs(sum);
        for (int64_t k = 0; k < K; ++k) {
          const double product = static_cast<double>(a[m * (K + kGap) + k]) * b[k * (N + kGap) + n];
          sum += product;
          size += std::abs(product);
        }
        EXPECT_NEAR(actual[m * (N + kGap) + n], sum, 1e-6 * size) << "row " << m << ", column " << n;
      }
      for (int64_t n = N; n < N + kGap; ++n) EXPECT_EQ(actual[m * (N + kGap) + n], kUntouched);
    }
  }
};

TEST(TileGemm, TheFirstFloatProductIsTheOneInUse) {
  ASSERT_FALSE(float_products().empty());
  EXPECT_EQ(float_products().front().multiply, tile_gemm().f32);
  EXPECT_EQ(float_products().front().name, tile_gemm_name(/*bf16=*/false));
}

TEST(TileGemm, EveryFloatProductMultiplies) {
  for (const FloatProduct& one : float_products()) {
    for (const Shape& shape : kShapes) {
      const Problem p(shape);
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << one.name << " " << shape.M << " x " << shape.K << " x " << shape.N
                                        << (accumulate ? ", added" : ""));
        std::vector<float> c = p.c;
        one.multiply(shape.M, shape.N, shape.K, p.a.data(), shape.K + kGap, p.b.data(), shape.N + kGap, c.data(),
                     shape.N + kGap, accumulate);
        p.expect_product(c, accumulate);
      }
    }
  }
}

// Returns B in pairs of rows of `columns`, a zero row after an odd last one.
std::vector<Bf16> pairs_of_rows(const std::vector<float>& b, const Shape& s) {
  const int64_t columns = s.N + kGap;
  std::vector<Bf16> packed(static_cast<size_t>((s.K + 1) / 2 * 2 * columns), Bf16{0});
  for (int64_t k = 0; k < s.K; ++k) {
    for (int64_t n = 0; n < s.N; ++n) packed[(k / 2 * columns + n) * 2 + k % 2] = kernels::to_bf16(b[k * columns + n]);
  }
  return packed;
}

TEST(TileGemm, TheBf16ProductMultiplies) {
  if (tile_gemm().bf16 == nullptr) GTEST_SKIP() << "this CPU has no bf16 products";
  for (const Shape& shape : kShapes) {
    const Problem p(shape);
    const std::vector<Bf16> b = pairs_of_rows(p.b, shape);
    std::vector<Bf16> a(p.a.size());
    for (size_t i = 0; i < a.size(); ++i) a[i] = kernels::to_bf16(p.a[i]);
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.M << " x " << shape.K << " x " << shape.N);
      std::vector<float> c = p.c;
      tile_gemm().bf16(shape.M, shape.N, (shape.K + 1) / 2 * 2, a.data(), shape.K + kGap, b.data(), shape.N + kGap,
                       c.data(), shape.N + kGap, accumulate);
      p.expect_product(c, accumulate);
    }
  }
}

}  // namespace
}  // namespace headshare
