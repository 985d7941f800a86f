#include "headshare/kernels/few_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace {

class FewRowsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

// Rows lie apart from each other, with NaN in between.
struct Sides {
  int64_t rows, depth, outputs;
  int64_t x_stride = depth + 3, matrix_stride = depth + 1, y_stride = outputs + 2;
  std::vector<float> x = apart(rows, x_stride, 1), matrix = apart(outputs, matrix_stride, 2);
  std::vector<float> bias = random_floats(outputs, 3);

  std::vector<float> apart(int64_t count, int64_t stride, uint64_t seed) const {
    std::vector<float> values = random_floats(count * stride, seed);
    for (int64_t i = 0; i < count * stride; ++i) {
      if (i % stride >= depth) values[i] = std::nanf("");
    }
    return values;
  }

  std::vector<float> product(bool with_bias, int64_t first_row, int64_t row_count) const {
    std::vector<float> y(rows * y_stride, 77);
    const FewRows whole = {.x = x.data() + first_row * x_stride,
                           .x_stride = x_stride,
                           .rows = row_count,
                           .depth = depth,
                           .matrix = matrix.data(),
                           .matrix_stride = matrix_stride,
                           .bias = with_bias ? bias.data() : nullptr,
                           .y = y.data() + first_row * y_stride,
                           .y_stride = y_stride};
    multiply_few_rows(whole, 0, outputs / 2);
    multiply_few_rows(whole, outputs / 2, outputs);
    return y;
  }
};

TEST_P(FewRowsTest, IsTheProduct) {
  for (int64_t rows = 1; rows <= kMostFewRows; ++rows) {
    for (const int64_t depth : {1, 3, 8, 31, 32, 47, 64, 100}) {
      const Sides sides{.rows = rows, .depth = depth, .outputs = 5};
      for (const bool with_bias : {false, true}) {
        const std::vector<float> y = sides.product(with_bias, 0, rows);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t o = 0; o < sides.outputs; ++o) {
            double sum = with_bias ? sides.bias[o] : 0, size = 1e-30;
            for (int64_t k = 0; k < depth; ++k) {
              const double one =
                  static_cast<double>(sides.x[r * sides.x_stride + k]) * sides.matrix[o * sides.matrix_stride + k];
              sum += one;
              size += std::abs(one);
            }
            EXPECT_NEAR(y[r * sides.y_stride + o], sum, 1e-6 * (size + std::abs(sum)));
          }
          EXPECT_EQ(y[r * sides.y_stride + sides.outputs], 77);
        }
      }
    }
  }
}

TEST_P(FewRowsTest, ARowHasTheSameBitsAloneAndAmongOthers) {
  const Sides sides{.rows = kMostFewRows, .depth = 83, .outputs = 7};
  const std::vector<float> all = sides.product(true, 0, kMostFewRows);
  for (int64_t r = 0; r < kMostFewRows; ++r) {
    const std::vector<float> alone = sides.product(true, r, 1);
    for (int64_t o = 0; o < sides.outputs; ++o) {
      EXPECT_EQ(all[r * sides.y_stride + o], alone[r * sides.y_stride + o]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, FewRowsTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
