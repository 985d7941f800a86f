#include "headshare/kernels/element_dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/testing.h"

namespace headshare::kernels {
namespace {

class ElementDropout : public testing::TestWithParam<int64_t> {
 protected:
  const DropoutMask mask_ = dropout_mask(0.3, /*key=*/77, /*shared=*/false);
};

TEST_P(ElementDropout, IsTheMaskOfItsDefinition) {
  const int64_t n = GetParam();
  std::vector<float> x(static_cast<size_t>(n)), y(static_cast<size_t>(n) + 1, -5);
  for (int64_t e = 0; e < n; ++e) x[static_cast<size_t>(e)] = 1 + static_cast<float>(e % 13);
  element_dropout(x.data(), n, mask_, y.data(), serial());
  for (int64_t e = 0; e < n; ++e) {
    const bool kept = keeps(mask_, 0, 0, e / 4096 * 512 + e % 512, e / 512 % 8);
    ASSERT_EQ(y[static_cast<size_t>(e)], kept ? x[static_cast<size_t>(e)] * mask_.kept_scale() : 0) << e;
  }
  EXPECT_EQ(y.back(), -5);
}

TEST_P(ElementDropout, IsTheSameInPlaceAndOnAnyNumberOfThreads) {
  const auto n = static_cast<size_t>(GetParam());
  std::vector<float> one(n, 2.0F), four(n, 2.0F);
  element_dropout(one.data(), GetParam(), mask_, one.data(), serial());
  element_dropout(four.data(), GetParam(), mask_, four.data(), std_threads(4));
  EXPECT_EQ(one, four);
}

TEST_P(ElementDropout, Bf16RoundsWhatFloatGives) {
  const auto n = static_cast<size_t>(GetParam());
  std::vector<Bf16> x(n), y(n);
  std::vector<float> exact(n);
  for (size_t e = 0; e < n; ++e) exact[e] = to_float(x[e] = to_bf16(0.37F * static_cast<float>(e % 11)));
  element_dropout(x.data(), GetParam(), mask_, y.data(), serial());
  element_dropout(exact.data(), GetParam(), mask_, exact.data(), serial());
  for (size_t e = 0; e < n; ++e) ASSERT_EQ(y[e].bits, to_bf16(exact[e]).bits) << e;
}

INSTANTIATE_TEST_SUITE_P(Sizes, ElementDropout, testing::Values(0, 1, 511, 512, 4095, 4096, 4097, 3 * 4096 + 700));

}  // namespace
}  // namespace headshare::kernels
