#include "headshare/kernels/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/base/rng.h"
#include "headshare/kernels/testing.h"

namespace headshare::kernels {
namespace tiles_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Bf16> narrowed(const std::vector<float>& x) {
  std::vector<Bf16> narrow(x.size());
  std::transform(x.begin(), x.end(), narrow.begin(), [](float one) { return to_bf16(one); });
  return narrow;
}

std::vector<float> widened(const std::vector<Bf16>& x) {
  std::vector<float> wide(x.size());
  std::transform(x.begin(), x.end(), wide.begin(), [](Bf16 one) { return to_float(one); });
  return wide;
}

class TilesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

// The shapes are tiles that end at, before and after every vector length, in rows wider than they are.
struct TileShape {
  int64_t keys, lanes, stride;
};
const TileShape kShapes[] = {{.keys = 1, .lanes = 16, .stride = 16},
                             {.keys = 3, .lanes = 16, .stride = 64},
                             {.keys = 7, .lanes = 32, .stride = 64},
                             {.keys = 17, .lanes = 48, .stride = 48},
                             {.keys = 128, .lanes = 64, .stride = 64}};

Tile tile_of(AlignedFloats& x, const TileShape& shape) { return {x.data(), shape.stride, shape.keys, shape.lanes}; }

TEST_P(TilesTest, Exp2IsExactToTwoRoundings) {
  std::vector<float> x = {0, -0.0F, 1, -1, 127.25F, -125.5F, -126, 0.5F, -0.5F, 3.25F};
  Philox rng(1);
  for (int i = 0; i < 999; ++i) x.push_back(static_cast<float>(rng.uniform() * 60 - 50));
  std::vector<float> y(x.size());
  tiles().exp2(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp2(static_cast<double>(x[i]));
    EXPECT_NEAR(y[i], exact, 2.4e-7 * exact) << x[i];
  }
}

TEST_P(TilesTest, Exp2AtTheEndsOfTheRange) {
  const float x[] = {-127, -1000, -kInfinity, 129, 1e30F, std::nanf("")};
  float y[6];
  tiles().exp2(x, 6, y);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isinf(y[3]));
  EXPECT_TRUE(std::isinf(y[4]));
  EXPECT_TRUE(std::isnan(y[5]));
}

// Returns the exponent of tiles.h, in double.
double exponent(const ScoreRule& rule, float score, int64_t j, int64_t i) {
  if (rule.causal && i < j + rule.diagonal) return -kInfinity;
  double e = static_cast<double>(rule.scale) * score;
  if (rule.key_bias != nullptr) e += rule.key_bias[j];
  return e - rule.slope * std::abs(static_cast<double>(rule.distance) + static_cast<double>(i - j));
}

// Returns rules that hide some, all or no keys, with and without what else may be added.
std::vector<ScoreRule> rules(const std::vector<float>& bias) {
  std::vector<ScoreRule> all = {{.scale = 0.7F}, {.scale = 0.7F, .key_bias = bias.data()}};
  all.push_back({.scale = 0.7F, .slope = 0.3F, .distance = 5});
  for (const int64_t diagonal : {-200, -3, 0, 2, 15, 17, 40, 300}) {
    all.push_back({.scale = 1.3F, .diagonal = diagonal, .causal = true});
    all.push_back(
        {.scale = 1, .key_bias = bias.data(), .slope = 0.1F, .distance = 2, .diagonal = diagonal, .causal = true});
  }
  return all;
}

TEST_P(TilesTest, TwoStepsOfTheRunningSoftmaxAreOneSoftmax) {
  for (const TileShape& shape : kShapes) {
    std::vector<float> bias = random_floats(shape.keys, 3);
    bias[0] = -kInfinity;  // a hidden key
    for (const float slack : {0.0F, 8.0F}) {
      for (ScoreRule rule : rules(bias)) {
        rule.slack = slack;
        const AlignedFloats first(shape.keys * shape.stride, 4, 10), second(shape.keys * shape.stride, 5, 10);
        AlignedFloats a = first, b = second;
        AlignedFloats m(shape.lanes, -kInfinity), l(shape.lanes, 0.0F), fade(shape.lanes, 0.0F);
        tiles().softmax_step(tile_of(a, shape), rule, m.data(), l.data(), fade.data());
        const AlignedFloats m_before = m;
        const bool moved = tiles().softmax_step(tile_of(b, shape), rule, m.data(), l.data(), fade.data());
        bool expected_move = false;
        for (int64_t i = 0; i < shape.lanes; ++i) {
          double sum = 0, largest = -kInfinity;
          for (int64_t j = 0; j < shape.keys; ++j) {
            const double e1 = exponent(rule, first[j * shape.stride + i], j, i);
            const double e2 = exponent(rule, second[j * shape.stride + i], j, i);
            largest = std::max({largest, e1, e2});
            const double base = std::isinf(m[i]) ? 0 : m[i];
            sum += std::exp2(e1 - base) + std::exp2(e2 - base);
            EXPECT_NEAR(b[j * shape.stride + i], std::exp2(e2 - base), 2e-5 * std::exp2(e2 - base) + 1e-37);
          }
          EXPECT_NEAR(l[i], sum, 2e-5 * sum);
          EXPECT_LE(largest, m[i] + slack + 1e-4);
          if (std::isinf(largest)) {
            EXPECT_EQ(m[i], -kInfinity);
          }
          if (std::isfinite(m_before[i])) {
            EXPECT_NEAR(fade[i], std::exp2(m_before[i] - m[i]), 1e-6);
          }
          expected_move |= fade[i] != 1;
        }
        EXPECT_EQ(moved, expected_move);
      }
    }
  }
}

TEST_P(TilesTest, WeightsFollowTheirLogarithm) {
  for (const TileShape& shape : kShapes) {
    const std::vector<float> bias = random_floats(shape.keys, 3);
    for (const ScoreRule& rule : rules(bias)) {
      const AlignedFloats scores(shape.keys * shape.stride, 4);
      AlignedFloats tile = scores, lse(shape.lanes, 1.5F);
      lse[1] = kInfinity;  // a query that sees nothing
      tiles().weights(tile_of(tile, shape), rule, lse.data());
      for (int64_t j = 0; j < shape.keys; ++j) {
        for (int64_t i = 0; i < shape.lanes; ++i) {
          const double expected = std::exp2(exponent(rule, scores[j * shape.stride + i], j, i) - lse[i]);
          EXPECT_NEAR(tile[j * shape.stride + i], expected, 2e-5 * expected + 1e-37);
        }
      }
    }
  }
}

TEST_P(TilesTest, ScoreGradients) {
  for (const TileShape& shape : kShapes) {
    for (const bool dropout : {false, true}) {
      const AlignedFloats w0(shape.keys * shape.stride, 1), g0(shape.keys * shape.stride, 2);
      const AlignedFloats keep(shape.keys * shape.lanes, 3), delta(shape.lanes, 4);
      AlignedFloats w = w0, g = g0;
      std::vector<float> sums(shape.keys, 1.0F);
      tiles().score_gradients(tile_of(w, shape), tile_of(g, shape), dropout ? keep.data() : nullptr, delta.data(), 0.5F,
                              sums.data());
      for (int64_t j = 0; j < shape.keys; ++j) {
        double sum = 1, size = 1;
        for (int64_t i = 0; i < shape.lanes; ++i) {
          const float kept = dropout ? keep[j * shape.lanes + i] : 1;
          const int64_t at = j * shape.stride + i;
          const double expected = 0.5 * w0[at] * (g0[at] * kept - delta[i]);
          EXPECT_NEAR(g[at], expected, 1e-5);
          EXPECT_EQ(w[at], dropout ? w0[at] * kept : w0[at]);
          sum += expected;
          size += std::abs(expected);
        }
        EXPECT_NEAR(sums[j], sum, 1e-6 * size);
      }
    }
  }
}

// Some keys start inside a group of eight, some tiles end inside one, and some queries are far away.
TEST_P(TilesTest, KeepTilesFollowTheDefinition) {
  for (const bool shared : {false, true}) {
    const DropoutMask mask = dropout_mask(0.3, 77, shared);
    for (const int64_t first_key : {0, 3, 8, 1000}) {
      for (const TileShape& shape : kShapes) {
        AlignedFloats keep(shape.keys * shape.lanes, -1.0F);
        tiles().keep_tile(keep.data(), shape.keys, shape.lanes, mask, 2, 5, 40, first_key);
        for (int64_t j = 0; j < shape.keys; ++j) {
          for (int64_t i = 0; i < shape.lanes; ++i) {
            const float expected = keeps(mask, 2, 5, 40 + i, first_key + j) ? mask.kept_scale() : 0;
            ASSERT_EQ(keep[j * shape.lanes + i], expected) << first_key << " " << j << " " << i;
          }
        }
      }
    }
  }
}

TEST_P(TilesTest, Products) {
  for (const TileShape& shape : kShapes) {
    const AlignedFloats x0(shape.keys * shape.stride, 1), y(shape.keys * shape.lanes, 2), f(shape.lanes, 3);
    const std::vector<float> by_row = random_floats(shape.keys, 4);
    AlignedFloats multiplied = x0, scaled = x0, lanes(shape.keys * shape.lanes, 0.0F), rows = lanes;
    tiles().multiply(tile_of(multiplied, shape), y.data());
    tiles().scale_lanes(tile_of(scaled, shape), f.data());
    AlignedFloats x = x0;
    tiles().scaled_lanes(tile_of(x, shape), f.data(), lanes.data(), shape.lanes);
    tiles().scaled_rows(x0.data(), shape.stride, shape.keys, shape.lanes - 3, by_row.data(), rows.data(), shape.lanes,
                        /*accumulate=*/false);
    AlignedFloats sums = rows;
    tiles().scaled_rows(x0.data(), shape.stride, shape.keys, shape.lanes - 3, by_row.data(), sums.data(), shape.lanes,
                        /*accumulate=*/true);
    for (int64_t j = 0; j < shape.keys; ++j) {
      for (int64_t i = 0; i < shape.lanes; ++i) {
        const int64_t at = j * shape.stride + i;
        EXPECT_EQ(multiplied[at], x0[at] * y[j * shape.lanes + i]);
        EXPECT_EQ(scaled[at], x0[at] * f[i]);
        EXPECT_EQ(lanes[j * shape.lanes + i], x0[at] * f[i]);
        EXPECT_EQ(rows[j * shape.lanes + i], i < shape.lanes - 3 ? x0[at] * by_row[j] : 0);
        EXPECT_FLOAT_EQ(sums[j * shape.lanes + i], 2 * rows[j * shape.lanes + i]);
      }
      // Nothing beyond the lanes is touched.
      for (int64_t i = shape.lanes; i < shape.stride; ++i) {
        EXPECT_EQ(multiplied[j * shape.stride + i], x0[j * shape.stride + i]);
      }
    }
  }
}

TEST_P(TilesTest, DotsOfRows) {
  for (const int64_t rows : {1, 3, 4, 9}) {
    for (const int64_t width : {1, 15, 16, 17, 64}) {
      for (const int64_t y_stride : {int64_t{0}, width + 1}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << width << ", y in rows of " << y_stride);
        const std::vector<Bf16> x16 = narrowed(random_floats(rows * (width + 3), 5));
        const std::vector<Bf16> y16 = narrowed(random_floats(rows * (width + 1), 6));
        const std::vector<float> x = widened(x16), y = widened(y16);
        std::vector<float> out(rows + 1, -7.0F), out16 = out;
        tiles().dots(x.data(), width + 3, y.data(), y_stride, rows, width, out.data());
        tiles().dots_bf16(x16.data(), width + 3, y16.data(), y_stride, rows, width, out16.data());
        for (int64_t r = 0; r < rows; ++r) {
          double sum = 0, size = 1;
          for (int64_t c = 0; c < width; ++c) {
            const double product = static_cast<double>(x[r * (width + 3) + c]) * y[r * y_stride + c];
            sum += product;
            size += std::abs(product);
          }
          EXPECT_NEAR(out[r], sum, 1e-6 * size);
          EXPECT_NEAR(out16[r], sum, 1e-6 * size);
        }
        EXPECT_EQ(out[rows], -7.0F);
        EXPECT_EQ(out16[rows], -7.0F);
      }
    }
  }
}

TEST_P(TilesTest, TransposeOfAnyShape) {
  for (const int64_t rows : {1, 3, 4, 5, 8, 17}) {
    for (const int64_t columns : {1, 2, 4, 7, 16, 33}) {
      const std::vector<float> x = random_floats(rows * (columns + 3), 5);
      std::vector<float> out(columns * (rows + 2), -7.0F);
      tiles().transpose(x.data(), columns + 3, rows, columns, out.data(), rows + 2);
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) EXPECT_EQ(out[c * (rows + 2) + r], x[r * (columns + 3) + c]);
        EXPECT_EQ(out[c * (rows + 2) + rows], -7.0F);
      }
    }
  }
}

TEST_P(TilesTest, NarrowRoundsToTheNearestEven) {
  std::vector<float> x = random_floats(77, 6);
  x[0] = std::nanf("");
  x[1] = kInfinity;
  x[2] = 1 + 0x1p-8F;      // a tie: down to even
  x[3] = 1 + 3 * 0x1p-8F;  // a tie: up to even
  x[4] = std::numeric_limits<float>::max();
  std::vector<Bf16> out(77, Bf16{1});
  tiles().narrow(x.data(), 11, 7, 10, out.data(), 11);
  for (int64_t r = 0; r < 7; ++r) {
    for (int64_t c = 0; c < 10; ++c) EXPECT_EQ(out[r * 11 + c].bits, to_bf16(x[r * 11 + c]).bits) << r << " " << c;
    EXPECT_EQ(out[r * 11 + 10].bits, 1);
  }
  EXPECT_TRUE(std::isnan(to_float(out[0])));
  EXPECT_TRUE(std::isinf(to_float(out[4])));
  EXPECT_EQ(to_float(out[2]), 1.0F);
  EXPECT_EQ(to_float(out[3]), 1 + 0x1p-6F);
}

TEST_P(TilesTest, RotateTurnsPairs) {
  for (const int64_t half : {1, 3, 16, 20, 35}) {
    const int64_t rows = 3, stride = 2 * half + 1, out_stride = 2 * half + 2;
    const std::vector<Bf16> x16 = narrowed(random_floats(rows * stride, 8));
    std::vector<float> x = widened(x16), cosine, sine, out(rows * out_stride, -7.0F);
    std::vector<Bf16> out16(out.size(), Bf16{1});
    for (int64_t i = 0; i < half; ++i) {
      cosine.push_back(std::cos(0.3F * static_cast<float>(i)));
      sine.push_back(std::sin(0.3F * static_cast<float>(i)));
    }
    tiles().rotate(x.data(), stride, rows, half, cosine.data(), sine.data(), out.data(), out_stride);
    tiles().rotate_bf16(x16.data(), stride, rows, half, cosine.data(), sine.data(), out16.data(), out_stride);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < half; ++i) {
        const double a = x[r * stride + i], b = x[r * stride + half + i], c = cosine[i], s = sine[i];
        const double expected[] = {a * c - b * s, b * c + a * s};
        for (int64_t part = 0; part < 2; ++part) {
          const int64_t at = r * out_stride + part * half + i;
          EXPECT_NEAR(out[at], expected[part], 1.2e-7 * (std::abs(a) + std::abs(b)));
          EXPECT_NEAR(to_float(out16[at]), expected[part], 0x1p-8 * (std::abs(a) + std::abs(b)));
        }
      }
      EXPECT_EQ(out[r * out_stride + 2 * half], -7.0F);
      EXPECT_EQ(out16[r * out_stride + 2 * half].bits, 1);
    }
    std::vector<float> inside = x;
    tiles().rotate(inside.data(), stride, rows, half, cosine.data(), sine.data(), inside.data(), stride);
    for (int64_t i = 0; i < 2 * half; ++i) EXPECT_EQ(inside[i], out[i]);
  }
}

TEST_P(TilesTest, PairsOfRows) {
  for (const int64_t rows : {1, 2, 5}) {
    for (const int64_t columns : {1, 8, 16, 35}) {
      const std::vector<float> x = random_floats(rows * (columns + 1), 7);
      const std::vector<Bf16> narrow = narrowed(x);
      std::vector<Bf16> from_floats(round_up(rows, 2) * columns), from_bf16(from_floats.size());
      tiles().narrow_pairs(x.data(), columns + 1, rows, columns, from_floats.data(), columns);
      tiles().pairs(narrow.data(), columns + 1, rows, columns, from_bf16.data(), columns);
      for (int64_t r = 0; r < round_up(rows, 2); ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const uint16_t expected = r < rows ? narrow[r * (columns + 1) + c].bits : 0;
          const int64_t at = (r / 2 * columns + c) * 2 + r % 2;
          EXPECT_EQ(from_floats[at].bits, expected);
          EXPECT_EQ(from_bf16[at].bits, expected);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, TilesTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

TEST(DropoutMask, KeepsItsShare) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const DropoutMask mask = dropout_mask(p, 5, /*shared=*/false);
    constexpr int kCount = 40000;
    int kept = 0;
    for (int i = 0; i < 200; ++i) {
      for (int j = 0; j < 200; ++j) kept += keeps(mask, 1, 2, i, j) ? 1 : 0;
    }
    EXPECT_NEAR(kept, kCount * (1 - p), 5 * std::sqrt(kCount * p * (1 - p)));
    EXPECT_NEAR(1 / mask.kept_scale(), 1 - p, 0.5 / 65536);
  }
  EXPECT_FALSE(dropout_mask(0, 5, false).active());
  EXPECT_TRUE(dropout_mask(1e-9, 5, false).active());
}

TEST(DropoutMask, FollowsKeySentenceHeadQueryAndMemoryKey) {
  const DropoutMask mask = dropout_mask(0.5, 5, /*shared=*/false);
  const DropoutMask other = dropout_mask(0.5, 6, /*shared=*/false);
  const DropoutMask shared = dropout_mask(0.5, 5, /*shared=*/true);
  int differ[5] = {};
  for (int j = 0; j < 64; ++j) {
    const bool here = keeps(mask, 0, 0, 0, j);
    differ[0] += here != keeps(other, 0, 0, 0, j);
    differ[1] += here != keeps(mask, 1, 0, 0, j);
    differ[2] += here != keeps(mask, 0, 1, 0, j);
    differ[3] += here != keeps(mask, 0, 0, 1, j);
    differ[4] += here != keeps(mask, 0, 0, 0, j + 64);
    EXPECT_EQ(keeps(shared, 0, 7, 0, j), here);
  }
  for (const int count : differ) EXPECT_GT(count, 10);
}

}  // namespace tiles_test
}  // namespace headshare::kernels
