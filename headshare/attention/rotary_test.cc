#include "headshare/attention/rotary.h"

#include <cmath>

#include "headshare/ops/testing.h"

namespace headshare {
namespace {
namespace rotary_test {

constexpr double kBase = 10000;

Tensor rotate(const Tensor& x, int64_t first, double base, int64_t period) {
  return headshare::rotate(x, {first, x.size(2), x.size(3), period, base});
}
Tensor rotate(const Tensor& x, int64_t first, double base) { return rotate(x, first, base, x.size(3)); }
Tensor rotate_last(const Tensor& x, int64_t first, double base, int64_t width) {
  return headshare::rotate(x, {first, x.size(2), width, width, base});
}

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

// Returns the heads of a projection, as schemes split them: [B, T, heads, D] seen as [B, heads, T, D].
Tensor heads_of(at::ScalarType type) {
  return random_tensor({2, 9, 3, 40}, 7).to(at::kBFloat16).to(type).transpose(1, 2);
}

TEST(Rotary, OnePassIsTheFormula) {
  const Tensor exact = rotate(heads_of(at::kDouble), /*first=*/5, kBase, /*period=*/20);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = heads_of(type);
    const Tensor found = rotate(x, /*first=*/5, kBase, /*period=*/20);
    const double rounding = type == at::kFloat ? std::numeric_limits<float>::epsilon() : 0x1p-8;
    EXPECT_EQ(found.scalar_type(), type);
    EXPECT_EQ(found.strides(), x.strides());
    EXPECT_TRUE(close(found.to(at::kDouble), exact, 2 * rounding * magnitude(exact)));
    EXPECT_TRUE(at::equal(rotate(x.contiguous(), 5, kBase, 20), found));
    EXPECT_TRUE(at::equal(rotate(x.transpose(2, 3).contiguous().transpose(2, 3), 5, kBase, 20), found));
  }
}

TEST(Rotary, AnglesThatAreKeptAreThoseAskedFor) {
  const Tensor x = heads_of(at::kFloat);
  const Tensor first = rotate(x, 5, kBase, 20);
  for (const Tensor& other : {rotate(x, 6, kBase, 20), rotate(x, 5, 500, 20), rotate(x, 5, kBase, 40)}) {
    EXPECT_FALSE(at::equal(other, first));
  }
  EXPECT_TRUE(at::equal(rotate(x.slice(2, 0, 4), 5, kBase, 20), first.slice(2, 0, 4)));
  EXPECT_TRUE(at::equal(rotate(x, 5, kBase, 20), first));
}

TEST(Rotary, GradientOfOnePassIsThatOfTheFormula) {
  const Tensor weights = heads_of(at::kDouble).flip(3);
  const auto gradient = [&](at::ScalarType type) {
    const Tensor x = heads_of(type).requires_grad_(true);
    (rotate(x, 5, kBase, 20) * weights.to(type)).sum().backward();
    return x.grad().to(at::kDouble);
  };
  const Tensor exact = gradient(at::kDouble);
  EXPECT_TRUE(close(gradient(at::kFloat), exact, 2 * std::numeric_limits<float>::epsilon() * magnitude(exact)));
  EXPECT_TRUE(close(gradient(at::kBFloat16), exact, 2 * 0x1p-8 * magnitude(exact)));
}

TEST(Rotary, LastDimensionsTurnAsVectorsOfTheirOwn) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const Tensor x = heads_of(type);
    const Tensor found = rotate_last(x, 5, kBase, /*width=*/12);
    EXPECT_EQ(found.scalar_type(), type);
    EXPECT_TRUE(at::equal(found.slice(3, 0, 28), x.slice(3, 0, 28)));
    EXPECT_TRUE(at::equal(found.slice(3, 28), rotate(x.slice(3, 28), 5, kBase)));
    EXPECT_TRUE(at::equal(rotate_last(x, 5, kBase, 40), rotate(x, 5, kBase)));
    const Tensor leaf = x.clone().requires_grad_(), weights = heads_of(type).flip(3);
    (rotate_last(leaf, 5, kBase, 12) * weights).sum().backward();
    EXPECT_TRUE(at::equal(leaf.grad().slice(3, 0, 28), weights.slice(3, 0, 28)));
    const Tensor part = x.slice(3, 28).clone().requires_grad_();
    (rotate(part, 5, kBase) * weights.slice(3, 28)).sum().backward();
    EXPECT_TRUE(at::equal(leaf.grad().slice(3, 28), part.grad()));
  }
}

TEST(Rotary, TakesNoTokens) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    EXPECT_EQ(rotate(at::zeros({2, 3, 0, 4}, type), 3, kBase).sizes(), at::IntArrayRef({2, 3, 0, 4}));
  }
}

// Cosines and sines have the factor of yarn: what turns is longer, what does not stays, and the gradient has it, too.
TEST(Rotary, TheAttentionFactorIsOnWhatTurns) {
  const RotaryScaling scaling = {
      .kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 64, .beta_fast = 9, .attention_factor = 1.5};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = heads_of(type).clone().requires_grad_(), weights = heads_of(type).flip(3);
    const RotaryAngles angles{5, x.size(2), 12, 12, kBase, scaling};
    const Tensor turned = headshare::rotate(x, angles);
    const double rounding = type == at::kFloat ? 1e-6 : 1e-14;
    EXPECT_TRUE(close(turned.slice(3, 28).norm(2, {3}), 1.5 * x.slice(3, 28).norm(2, {3}), rounding * 10));
    EXPECT_TRUE(at::equal(turned.slice(3, 0, 28), x.slice(3, 0, 28)));
    (turned * weights).sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), rotary_pass(weights, angles, /*back=*/true)));
    // The gradient is the transposed map: <R x, w> = <x, R' w>.
    EXPECT_NEAR((x * x.grad()).sum().item<double>(), (turned * weights).sum().item<double>(), rounding * 1000);
  }
}

// Threads keep the last two angles, in float.
TEST(Rotary, AnglesOfAnotherScalingAreOthers) {
  const Tensor x = heads_of(at::kFloat);
  const auto scaled = [&](double factor) {
    const RotaryScaling scaling{.kind = RotaryScalingKind::kLinear, .factor = factor};
    return headshare::rotate(x,
                             {.first = 5, .tokens = 9, .width = 40, .period = 40, .base = kBase, .scaling = scaling});
  };
  const Tensor plain = rotate(x, 5, kBase), slow = scaled(2), slower = scaled(3);
  EXPECT_FALSE(at::equal(plain, slow));
  EXPECT_FALSE(at::equal(slow, slower));
  for (int turn = 0; turn < 3; ++turn) {  // as local and global layers ask in turns
    EXPECT_TRUE(at::equal(scaled(2), slow));
    EXPECT_TRUE(at::equal(scaled(3), slower));
  }
  EXPECT_TRUE(at::equal(rotate(x, 5, kBase), plain));
}

}  // namespace rotary_test
}  // namespace
}  // namespace headshare
