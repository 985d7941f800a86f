#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace queries_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = -7;

class QueriesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

// Expects `found` to be `before` plus n terms, in float's rounding.
template <class Term>
void expect_sum(float found, double before, int64_t n, const Term& term) {
  double sum = before, size = 1;
  for (int64_t k = 0; k < n; ++k) {
    const double one = term(k);
    sum += one;
    size += std::abs(one);
  }
  EXPECT_NEAR(found, sum, 1e-6 * size);
}

double product(float a, float b) { return static_cast<double>(a) * b; }

// These are keys or values in rows wider than they are, beside some queries.
struct RowCase {
  int64_t queries, rows, width;
};

std::vector<RowCase> row_cases() {
  std::vector<RowCase> all;
  for (const int64_t queries : {1, 2, 3, 4, 7}) {
    for (const int64_t rows : {1, 2, 3, 4, 7, 16}) {
      for (const int64_t width : {1, 15, 16, 37, 64, 80, 129}) all.push_back({queries, rows, width});
    }
  }
  return all;
}

TEST_P(QueriesTest, ScoresOfEveryQueryAndKey) {
  for (const auto& [queries, rows, width] : row_cases()) {
    SCOPED_TRACE(testing::Message() << queries << " queries, " << rows << " keys of " << width);
    const std::vector<float> x = random_floats(rows * (width + 3), 5), y = random_floats(queries * (width + 1), 6);
    std::vector<float> out(queries * (rows + 2), kUntouched);
    tiles().query_scores({x.data(), width + 3, rows, width}, y.data(), width + 1, queries, out.data(), rows + 2);
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        expect_sum(out[i * (rows + 2) + r], 0, width,
                   [&](int64_t c) { return product(x[r * (width + 3) + c], y[i * (width + 1) + c]); });
      }
      EXPECT_EQ(out[i * (rows + 2) + rows], kUntouched);
    }
  }
}

TEST_P(QueriesTest, ValuesUnderTheWeightsOfEveryQuery) {
  for (const auto& [queries, rows, width] : row_cases()) {
    SCOPED_TRACE(testing::Message() << queries << " queries, " << rows << " values of " << width);
    const std::vector<float> x = random_floats(rows * (width + 3), 7), weights = random_floats(queries * (rows + 1), 8);
    const std::vector<float> before = random_floats(queries * (width + 2), 9);
    std::vector<float> out = before;
    tiles().query_values({x.data(), width + 3, rows, width}, weights.data(), rows + 1, queries, out.data(), width + 2);
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        expect_sum(out[i * (width + 2) + c], before[i * (width + 2) + c], rows,
                   [&](int64_t r) { return product(weights[i * (rows + 1) + r], x[r * (width + 3) + c]); });
      }
      EXPECT_EQ(out[i * (width + 2) + width], before[i * (width + 2) + width]);
    }
  }
}

// Queries along lanes: out is a tile, whose rows may be longer than it is.
TEST_P(QueriesTest, ScoresOfLanes) {
  for (const int64_t lanes : {16, 48}) {
    for (const int64_t keys : {1, 3, 4, 7, 8, 16, 29}) {
      for (const int64_t width : {1, 3, 4, 64, 66}) {
        SCOPED_TRACE(testing::Message() << lanes << " lanes, " << keys << " keys of " << width);
        const std::vector<float> x = random_floats(keys * (width + 3), 5);
        const AlignedFloats queries(width * lanes, 6);
        AlignedFloats out(keys * (lanes + 16), kUntouched);
        tiles().lane_scores({x.data(), width + 3, keys, width}, queries.data(), {out.data(), lanes + 16, keys, lanes});
        for (int64_t r = 0; r < keys; ++r) {
          for (int64_t i = 0; i < lanes; ++i) {
            expect_sum(out[r * (lanes + 16) + i], 0, width,
                       [&](int64_t c) { return product(x[r * (width + 3) + c], queries[c * lanes + i]); });
          }
          EXPECT_EQ(out[r * (lanes + 16) + lanes], kUntouched);
        }
      }
    }
  }
}

TEST_P(QueriesTest, ValuesUnderTheWeightsOfLanes) {
  for (const int64_t queries : {1, 2, 5, 6, 7, 12, 15}) {
    for (const int64_t rows : {1, 2, 8, 9}) {
      for (const int64_t width : {1, 16, 37, 64, 129}) {
        SCOPED_TRACE(testing::Message() << queries << " queries, " << rows << " values of " << width);
        const std::vector<float> x = random_floats(rows * (width + 3), 7), weights = random_floats(rows * 16, 8);
        const std::vector<float> before = random_floats(queries * (width + 2), 9);
        std::vector<float> out = before;
        tiles().lane_values({x.data(), width + 3, rows, width}, weights.data(), 16, queries, out.data(), width + 2);
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t c = 0; c < width; ++c) {
            expect_sum(out[i * (width + 2) + c], before[i * (width + 2) + c], rows,
                       [&](int64_t r) { return product(weights[r * 16 + i], x[r * (width + 3) + c]); });
          }
          EXPECT_EQ(out[i * (width + 2) + width], before[i * (width + 2) + width]);
        }
      }
    }
  }
}

// Returns rules with and without what may be added to scores; some hide a key.
std::vector<ScoreRule> rules(const std::vector<float>& bias) {
  return {{.scale = 0.7F},
          {.scale = 0.7F, .slope = 0.3F, .distance = 200},
          {.scale = 1.3F, .key_bias = bias.data()},
          {.scale = 1, .key_bias = bias.data(), .slope = 0.1F, .distance = 128}};
}

double exponent(const ScoreRule& rule, float score, int64_t j) {
  const double bias = rule.key_bias == nullptr ? 0 : rule.key_bias[j];
  return static_cast<double>(rule.scale) * score + bias - rule.slope * (rule.distance - static_cast<double>(j));
}

TEST_P(QueriesTest, TwoStepsOfTheRunningSoftmaxAreOneSoftmax) {
  for (const int64_t keys : {1, 3, 16, 17, 127, 128}) {
    std::vector<float> bias = random_floats(round_up(keys, kLaneStep), 3);
    bias[0] = -kInfinity;
    std::fill(bias.begin() + keys, bias.end(), std::nanf(""));  // nobody has written these
    for (const ScoreRule& rule : rules(bias)) {
      std::vector<float> a = random_floats(round_up(keys, kLaneStep), 4, 10), b = random_floats(a.size(), 5, 10);
      std::fill(a.begin() + keys, a.end(), std::nanf(""));
      std::fill(b.begin() + keys, b.end(), 1e30F);
      const std::vector<float> first = a, second = b;
      float m = -kInfinity, l = 0;
      tiles().softmax_row(a.data(), keys, rule, &m, &l);
      const float m_before = m;
      const float fade = tiles().softmax_row(b.data(), keys, rule, &m, &l);
      double largest = -kInfinity, sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        largest = std::max({largest, exponent(rule, first[j], j), exponent(rule, second[j], j)});
      }
      if (std::isinf(largest)) {  // the only key is hidden
        EXPECT_EQ(m, -kInfinity);
        EXPECT_EQ(l, 0);
        EXPECT_EQ(fade, 1);
        EXPECT_EQ(b, std::vector<float>(b.size(), 0.0F));
        continue;
      }
      EXPECT_NEAR(m, largest, 1e-4);
      EXPECT_NEAR(fade, std::exp2(m_before - m), 1e-6);
      for (int64_t j = 0; j < static_cast<int64_t>(b.size()); ++j) {
        const double expected = j < keys ? std::exp2(exponent(rule, second[j], j) - m) : 0;
        EXPECT_NEAR(b[j], expected, 2e-5 * expected + 1e-37);
        if (j < keys) sum += expected + std::exp2(exponent(rule, first[j], j) - m);
      }
      EXPECT_NEAR(l, sum, 2e-5 * sum);
    }
  }
}

TEST_P(QueriesTest, NanAmongScoresIsNotHidden) {
  for (const float rest : {0.0F, -kInfinity}) {
    std::vector<float> row(kLaneStep, rest);
    row[1] = std::nanf("");
    float m = -kInfinity, l = 0;
    tiles().softmax_row(row.data(), 3, {}, &m, &l);
    EXPECT_TRUE(std::isnan(l)) << rest;
  }
}

INSTANTIATE_TEST_SUITE_P(AllOfThem, QueriesTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace queries_test
}  // namespace headshare::kernels
