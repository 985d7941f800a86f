#include "headshare/kernels/halves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headshare/kernels/gemm.h"
#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace {

class HalvesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

// Returns u and l by their definition.
std::pair<Bf16, Bf16> halves_of(float x) {
  const Bf16 u = to_bf16(x);
  return {u, to_bf16(std::isfinite(to_float(u)) ? x - to_float(u) : 0.0F)};
}

// These values [rows, columns] lie in rows that are one longer; some have no halves.
struct Values {
  int64_t rows, columns;
  std::vector<float> data = random_floats(rows * (columns + 1), 3);

  float at(int64_t r, int64_t c) const { return r < rows && c < columns ? data[r * stride() + c] : 0; }
  int64_t stride() const { return columns + 1; }
};

constexpr int64_t kSizes[] = {1, 2, 7, 16, 37, 64};

TEST_P(HalvesTest, LieSideBySideInALeftSide) {
  for (const int64_t rows : {1, 3}) {
    for (const int64_t depth : kSizes) {
      const Values x{rows, depth};
      const int64_t even = round_up(depth, 2), stride = depth_in_halves(depth) + 5;
      std::vector<Bf16> out(rows * stride, Bf16{77});
      halves().left(x.data.data(), x.stride(), rows, depth, out.data(), stride);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t k = 0; k < even; ++k) {
          const auto [u, l] = halves_of(x.at(r, k));
          EXPECT_EQ(out[r * stride + k].bits, u.bits);
          EXPECT_EQ(out[r * stride + even + k].bits, l.bits);
          EXPECT_EQ(out[r * stride + 2 * even + k].bits, u.bits);
        }
        EXPECT_EQ(out[r * stride + 3 * even].bits, 77);
      }
    }
  }
}

TEST_P(HalvesTest, LieInPairsOfRowsInARightSide) {
  for (const int64_t depth : kSizes) {
    for (const int64_t columns : kSizes) {
      const Values x{depth, columns};
      const int64_t pairs = round_up(depth, 2) / 2, stride = columns + 3;
      std::vector<Bf16> out(3 * pairs * stride * 2, Bf16{77});
      halves().right(x.data.data(), x.stride(), depth, columns, out.data(), stride);
      for (int64_t k = 0; k < 2 * pairs; ++k) {
        for (int64_t c = 0; c < columns; ++c) {
          const auto [v, m] = halves_of(x.at(k, c));
          const auto found = [&](int64_t third) {
            return out[((third * pairs + k / 2) * stride + c) * 2 + k % 2].bits;
          };
          EXPECT_EQ(found(0), v.bits);
          EXPECT_EQ(found(1), v.bits);
          EXPECT_EQ(found(2), m.bits);
        }
        EXPECT_EQ(out[(k / 2 * stride + columns) * 2].bits, 77);
      }
    }
  }
}

TEST_P(HalvesTest, AddUpToTheNumber) {
  constexpr float kMax = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = random_floats(4000, 5, 1e3);
  for (const float one : {0.0F, -0.0F, 1.0F, 0x1.fffffep-1F, 0x1p-100F, -0x1.01p+120F}) x.push_back(one);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<Bf16> out(depth_in_halves(n));
  halves().left(x.data(), n, 1, n, out.data(), 0);
  const auto sum = [&](int64_t i) { return static_cast<double>(to_float(out[i])) + to_float(out[round_up(n, 2) + i]); };
  for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(sum(i), x[i], 0x1p-16 * std::abs(x[i])) << x[i];

  for (const float one : {kMax, kInfinity, -kInfinity, std::nanf("")}) {
    std::vector<float> many(20, one);
    halves().left(many.data(), 20, 1, 20, out.data(), 0);
    for (int64_t i = 0; i < 20; ++i) {
      if (std::isnan(one)) {
        EXPECT_TRUE(std::isnan(to_float(out[i])));
      } else {
        EXPECT_EQ(to_float(out[i]), std::copysign(kInfinity, one));
      }
      EXPECT_EQ(to_float(out[20 + i]), 0);
    }
  }
}

// This checks the bound of halves.h for each addend, on a product of the plain reference.
TEST_P(HalvesTest, OfBothSidesGiveTheProduct) {
  constexpr int64_t kRows = 5, kColumns = 19;
  for (const int64_t depth : kSizes) {
    const Values x{kRows, depth}, y{depth, kColumns};
    const int64_t deep = depth_in_halves(depth);
    std::vector<Bf16> left(kRows * deep), right(deep * kColumns);
    halves().left(x.data.data(), x.stride(), kRows, depth, left.data(), deep);
    halves().right(y.data.data(), y.stride(), depth, kColumns, right.data(), kColumns);
    std::vector<float> found(kRows * kColumns);
    plain_gemm().bf16(kRows, kColumns, deep, left.data(), deep, right.data(), kColumns, found.data(), kColumns, false);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kColumns; ++c) {
        double exact = 0, size = 0;
        for (int64_t k = 0; k < depth; ++k) {
          exact += static_cast<double>(x.at(r, k)) * y.at(k, c);
          size += std::abs(static_cast<double>(x.at(r, k)) * y.at(k, c));
        }
        EXPECT_NEAR(found[r * kColumns + c], exact, 0x1p-14 * size);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, HalvesTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
