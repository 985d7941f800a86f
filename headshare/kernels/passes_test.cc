#include "headshare/kernels/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class PassesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

double gelu_of(GeluForm form, double x) {
  if (form == GeluForm::kErf) return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double slope_of(GeluForm form, double x) {
  if (form == GeluForm::kErf) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  }
  const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  const double tanh = std::tanh(inner);
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

// The values go from where nothing passes to where everything does, densely around zero.
std::vector<float> abscissas() {
  std::vector<float> x = {0, -0.0F, 1e-30F, -1e-30F, 100, -100, 3e4F, -3e4F};
  for (int i = -6000; i <= 6000; ++i) x.push_back(static_cast<float>(i) * 0.0017F);
  return x;
}

TEST_P(PassesTest, GeluAndItsSlopeAreExactToAFewRoundings) {
  const std::vector<float> x = abscissas();
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size()), dx(x.size());
  const std::vector<float> dy = random_floats(n, 3);
  for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
    passes().gelu(x.data(), n, form, y.data());
    passes().gelu_gradient(x.data(), dy.data(), n, form, dx.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double magnitude = std::abs(static_cast<double>(x[i]));
      EXPECT_NEAR(y[i], gelu_of(form, x[i]), 3e-7 * magnitude) << x[i];
      const double slope = slope_of(form, x[i]);
      EXPECT_NEAR(dx[i], dy[i] * slope, 6e-7 * std::abs(dy[i]) * std::max(1.0, std::min(magnitude, 10.0))) << x[i];
    }
  }
}

TEST_P(PassesTest, GeluTakesAnyNumberOfValuesInPlace) {
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> x = random_floats(n, 5, 2);
    std::vector<float> apart(x.size() + 1, 7.0F), inside = x;
    passes().gelu(x.data(), n, GeluForm::kErf, apart.data());
    passes().gelu(inside.data(), n, GeluForm::kErf, inside.data());
    EXPECT_EQ(apart.back(), 7.0F);
    apart.pop_back();
    EXPECT_EQ(apart, inside);
    std::vector<float> dx = x;
    passes().gelu_gradient(x.data(), dx.data(), n, GeluForm::kTanh, dx.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(dx[i], x[i] * slope_of(GeluForm::kTanh, x[i]), 4e-6);
  }
}

TEST_P(PassesTest, GeluShowsNan) {
  const float x = std::nanf(""), one = 1;
  for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
    float y = 0;
    passes().gelu(&x, 1, form, &y);
    EXPECT_TRUE(std::isnan(y));
    passes().gelu_gradient(&x, &one, 1, form, &y);
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST_P(PassesTest, CrossEntropyIsTheFormula) {
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 4096, 4097, 50257}) {
    for (const double spread : {0.1, 3.0, 80.0}) {
      const std::vector<float> scores = random_floats(n, static_cast<uint64_t>(n), spread);
      const int64_t target = n / 3;
      double most = -kInfinity, sum = 0;
      for (const float x : scores) most = std::max(most, static_cast<double>(x));
      for (const float x : scores) sum += std::exp(x - most);
      const double expected = std::log(sum) + most - scores[static_cast<size_t>(target)];
      std::vector<float> slopes(scores.size() + 1, 7.0F);
      const double loss = passes().cross_entropy(scores.data(), n, target, slopes.data());
      EXPECT_NEAR(loss, expected, 6e-7 * (1 + spread)) << n;
      EXPECT_EQ(slopes.back(), 7.0F);
      double total = 0;
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(i);
        const double share = std::exp(scores[at] - most) / sum;
        // Exponents are rounded in proportion to their size.
        const double rounding = (8 + std::abs(scores[at] - most)) * 1.2e-7;
        EXPECT_NEAR(slopes[at], share - (i == target ? 1 : 0), rounding * share + (i == target ? 1.2e-7 : 1e-37))
            << n << " " << i;
        total += slopes[at];
      }
      EXPECT_NEAR(total, 0, 1e-5);
      EXPECT_EQ(passes().cross_entropy(scores.data(), n, target, nullptr), loss);
      std::vector<float> inside = scores;
      EXPECT_EQ(passes().cross_entropy(inside.data(), n, target, inside.data()), loss);
      slopes.pop_back();
      EXPECT_EQ(inside, slopes);
    }
  }
}

TEST_P(PassesTest, CrossEntropyTakesHugeScoresAndShowsNan) {
  std::vector<float> scores(100, -3e38F);
  scores[7] = 3e38F;
  EXPECT_EQ(passes().cross_entropy(scores.data(), 100, 7, nullptr), 0);
  for (const size_t place : {3UL, 98UL}) {
    std::vector<float> broken(100, 1.0F);
    broken[place] = std::nanf("");
    EXPECT_TRUE(std::isnan(passes().cross_entropy(broken.data(), 100, 50, broken.data())));
    EXPECT_TRUE(std::isnan(broken[50]));
  }
}

// Returns log softmax(x / T) in double.
std::vector<double> logs_of(const std::vector<float>& x, double temperature) {
  double most = -kInfinity, sum = 0;
  for (const float one : x) most = std::max(most, static_cast<double>(one));
  for (const float one : x) sum += std::exp((one - most) / temperature);
  std::vector<double> logs;
  for (const float one : x) logs.push_back((one - most) / temperature - std::log(sum));
  return logs;
}

TEST_P(PassesTest, DivergenceIsTheFormula) {
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 4097, 50257}) {
    for (const double spread : {0.1, 3.0, 30.0}) {
      for (const double temperature : {1.0, 2.5, 0.5}) {
        const std::vector<float> scores = random_floats(n, static_cast<uint64_t>(n), spread);
        const std::vector<float> teacher = random_floats(n, static_cast<uint64_t>(n) + 1, spread);
        const std::vector<double> own = logs_of(scores, temperature), wanted = logs_of(teacher, temperature);
        double expected = 0;
        for (size_t i = 0; i < own.size(); ++i) expected += std::exp(wanted[i]) * (wanted[i] - own[i]);
        std::vector<float> slopes(scores.size() + 1, 7.0F);
        const double found = passes().divergence(scores.data(), teacher.data(), n, temperature, slopes.data());
        // Products and exponents are rounded in proportion to their size; without vectors a block's sum has 1024
        // roundings, which come to about 32 of 2^-24.
        const double size = 1 + 4 * spread / temperature + std::abs(expected);
        EXPECT_NEAR(found, expected, 2e-6 * size) << n << " " << spread << " " << temperature;
        EXPECT_EQ(slopes.back(), 7.0F);
        for (size_t i = 0; i < own.size(); ++i) {
          const double both = std::exp(own[i]) + std::exp(wanted[i]);
          EXPECT_NEAR(slopes[i], std::exp(own[i]) - std::exp(wanted[i]),
                      both * (8 + 8 * spread / temperature) * 1.2e-7 + 1e-37)
              << n << " " << i;
        }
        EXPECT_EQ(passes().divergence(scores.data(), teacher.data(), n, temperature, nullptr), found);
        std::vector<float> inside = teacher;
        EXPECT_EQ(passes().divergence(scores.data(), inside.data(), n, temperature, inside.data()), found);
        slopes.pop_back();
        EXPECT_EQ(inside, slopes);
      }
    }
  }
}

TEST_P(PassesTest, DivergenceOfEqualRowsIsNothingAtAll) {
  for (const int64_t n : {1, 17, 4097}) {
    const std::vector<float> scores = random_floats(n, 3, 5);
    std::vector<float> slopes(scores.size(), 7.0F);
    EXPECT_EQ(passes().divergence(scores.data(), scores.data(), n, 1.5, slopes.data()), 0);
    EXPECT_EQ(slopes, std::vector<float>(scores.size(), 0.0F));
  }
}

TEST_P(PassesTest, DivergenceShowsNan) {
  const std::vector<float> plain(100, 1.0F);
  for (const size_t place : {3UL, 98UL}) {
    std::vector<float> broken = plain, slopes(100);
    broken[place] = std::nanf("");
    EXPECT_TRUE(std::isnan(passes().divergence(broken.data(), plain.data(), 100, 1, slopes.data())));
    EXPECT_TRUE(std::isnan(slopes[50]));
    EXPECT_TRUE(std::isnan(passes().divergence(plain.data(), broken.data(), 100, 1, slopes.data())));
    EXPECT_TRUE(std::isnan(slopes[50]));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, PassesTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
