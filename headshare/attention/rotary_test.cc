#include "headshare/attention/rotary.h"

#include <cmath>

#include "headshare/ops/testing.h"

namespace headshare {
namespace {

constexpr double kBase = 10000;

TEST(Rotary, TurnsPairsByTheFormula) {
  const Tensor x = random_tensor({2, 3, 5, 6}, 1);
  const Tensor turned = rotate(x, /*first=*/7, kBase);
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(7 + t) * std::pow(kBase, -2.0 * static_cast<double>(i) / 6);
      const double a = x[1][2][t][i].item<double>(), b = x[1][2][t][i + 3].item<double>();
      EXPECT_NEAR(turned[1][2][t][i].item<double>(), a * std::cos(angle) - b * std::sin(angle), 1e-14);
      EXPECT_NEAR(turned[1][2][t][i + 3].item<double>(), b * std::cos(angle) + a * std::sin(angle), 1e-14);
    }
  }
}

TEST(Rotary, KeepsLengthsAndPositionZero) {
  const Tensor x = random_tensor({1, 2, 9, 8}, 2);
  const Tensor turned = rotate(x, /*first=*/0, kBase);
  EXPECT_TRUE(close(turned.norm(2, {3}), x.norm(2, {3}), 1e-14));
  EXPECT_TRUE(at::equal(turned.select(2, 0), x.select(2, 0)));
}

TEST(Rotary, ProductsDependOnTheDistanceOnly) {
  const Tensor q = random_tensor({1, 1, 1, 8}, 3), k = random_tensor({1, 1, 1, 8}, 4);
  const auto product = [&](int64_t i, int64_t j) { return (rotate(q, i, kBase) * rotate(k, j, kBase)).sum(); };
  for (const int64_t shift : {1, 10, 1000}) {
    EXPECT_TRUE(close(product(5 + shift, 2 + shift), product(5, 2), 1e-12));
    EXPECT_GT(distance(product(5 + shift, 2), product(5, 2)), 1e-3);
  }
}

TEST(Rotary, ContinuesWhereTheCacheEnds) {
  const Tensor x = random_tensor({1, 2, 9, 4}, 5);
  const Tensor pieces = at::cat({rotate(x.slice(2, 0, 4), 0, kBase), rotate(x.slice(2, 4), 4, kBase)}, 2);
  EXPECT_TRUE(at::equal(pieces, rotate(x, 0, kBase)));
}

TEST(Rotary, AnglesAreExactInFloatFarOut) {
  const Tensor x = random_tensor({1, 1, 1, 8}, 6, at::kFloat);
  const Tensor exact = rotate(x.to(at::kDouble), 1000000, kBase);
  EXPECT_TRUE(close(rotate(x, 1000000, kBase), exact, 4 * std::numeric_limits<float>::epsilon() * magnitude(x)));
}

TEST(Rotary, TakesNoTokens) {
  EXPECT_EQ(rotate(at::zeros({2, 3, 0, 4}), 3, kBase).sizes(), at::IntArrayRef({2, 3, 0, 4}));
}

}  // namespace
}  // namespace headshare
