// These tests draw a card's masks on the CPU, and compare them with the CPU's kernels bit for bit.
#include "headshare/ops/drawn_mask.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/kernels/element_dropout.h"
#include "headshare/ops/head_attention/head_dropout.h"
#include "headshare/ops/layer.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

constexpr uint64_t kKey = 0x9FEDCBA987654321;  // its words' high bits are set

TEST(DrawnMask, WeightsAreThoseOfTheKernels) {
  for (const bool shared : {false, true}) {
    for (const double p : {1e-9, 0.1, 0.5, 0.99999}) {
      for (const DrawnPart& part : {DrawnPart{}, DrawnPart{2, 3, 5, 17}, DrawnPart{1, 2, 33, 64, 128, 0},
                                    DrawnPart{2, 1, 3, 9, 7, 13}, DrawnPart{1, 1, 2, 8, int64_t{1} << 31, 24}}) {
        const kernels::DropoutMask mask = kernels::dropout_mask(p, kKey, shared);
        const Tensor drawn = drawn_weight_factors(mask, part, at::kFloat);
        ASSERT_EQ(drawn.sizes(), at::IntArrayRef({part.B, part.heads, part.T, part.S}));
        const auto found = drawn.accessor<float, 4>();
        for (int64_t b = 0; b < part.B; ++b)
          for (int64_t h = 0; h < part.heads; ++h)
            for (int64_t i = 0; i < part.T; ++i)
              for (int64_t j = 0; j < part.S; ++j) {
                const bool kept = kernels::keeps(mask, b, h, part.first_query + i, part.first_key + j);
                ASSERT_EQ(found[b][h][i][j], kept ? mask.kept_scale() : 0.0F) << b << " " << h << " " << i << " " << j;
              }
      }
    }
  }
}

TEST(DrawnMask, ElementsAreThoseOfTheKernels) {
  for (const int64_t n : {0, 1, 7, 511, 4096, 4097, 10000}) {
    const kernels::DropoutMask mask = kernels::dropout_mask(0.3, kKey, /*shared=*/false);
    const Tensor ones = at::ones({n}), expected = at::empty({n});
    kernels::element_dropout(ones.const_data_ptr<float>(), n, mask, expected.data_ptr<float>(), torch_threads());
    EXPECT_TRUE(at::equal(drawn_element_factors(mask, n, at::kFloat), expected)) << n;
  }
}

// float64 has no kernel on the CPU and takes the way of the cards.
TEST(DrawnMask, DoublesDropTheElementsOfFloats) {
  const Tensor x = random_tensor({3, 5, 700}, 1, at::kFloat);
  const Tensor dropped = dropout_pass(x, 0.25, kKey);
  EXPECT_TRUE(at::equal(dropout_pass(x.to(at::kDouble), 0.25, kKey).to(at::kFloat), dropped));
  const Tensor turned = x.transpose(0, 2);  // elements count in the order of the tensor's own shape
  EXPECT_TRUE(
      at::equal(dropout_pass(turned.to(at::kDouble), 0.25, kKey).to(at::kFloat), dropout_pass(turned, 0.25, kKey)));
}

TEST(DrawnMask, FactorsOfEveryTypeAreRoundedFromTheSame) {
  const kernels::DropoutMask mask = kernels::dropout_mask(0.3, kKey, /*shared=*/false);
  const Tensor floats = drawn_element_factors(mask, 5000, at::kFloat);
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16, at::kHalf}) {
    EXPECT_TRUE(at::equal(drawn_element_factors(mask, 5000, type), floats.to(type))) << type;
  }
}

TEST(DrawnMask, OnCudaIsThatOfTheCpu) {
  HS_NEEDS_CUDA();
  const kernels::DropoutMask mask = kernels::dropout_mask(0.3, kKey, /*shared=*/false);
  const DrawnPart part{2, 3, 65, 70, 3, 5};
  const auto there = at::device(at::kCUDA).dtype(at::kFloat);
  EXPECT_TRUE(at::equal(drawn_weight_factors(mask, part, there).cpu(), drawn_weight_factors(mask, part, at::kFloat)));
  EXPECT_TRUE(at::equal(drawn_element_factors(mask, 9999, there).cpu(), drawn_element_factors(mask, 9999, at::kFloat)));
}

}  // namespace
}  // namespace headshare
