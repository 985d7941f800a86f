#include "headshare/ops/norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/ops/testing.h"

namespace headshare {
namespace {

TEST(LayerNorm, IsTheFormulaAlsoForLargeMeans) {
  LayerNorm norm(16, /*eps=*/1e-5);
  norm.to(at::kDouble);
  initialise(norm, 1);
  EXPECT_EQ(norm.weight.min().item<double>(), 1);
  EXPECT_EQ(norm.bias.abs().max().item<double>(), 0);
  const at::NoGradGuard no_grad;
  norm.weight.copy_(random_tensor({16}, 3));
  norm.bias.copy_(random_tensor({16}, 4));
  for (const double mean : {0.0, 1e4}) {
    const Tensor x = random_tensor({5, 16}, 2) + mean;
    const Tensor centred = x - x.mean(1, /*keepdim=*/true);
    const Tensor variance = centred.square().mean(1, /*keepdim=*/true);
    const Tensor expected = centred / (variance + 1e-5).sqrt() * norm.weight + norm.bias;
    EXPECT_TRUE(close(norm.forward(x), expected, 1e-13 * (1 + mean)));
  }
}

TEST(LayerNorm, TakesEmptyInputAndConstantRows) {
  LayerNorm norm(4, /*eps=*/1e-5);
  initialise(norm, 1);
  EXPECT_EQ(norm.forward(at::zeros({2, 0, 4})).numel(), 0);
  EXPECT_EQ(norm.forward(at::full({1, 4}, 3.0)).abs().max().item<float>(), 0.0F);
}

Tensor rms_formula(const Tensor& x, const Tensor& weight, double eps) {
  return x / (x.square().mean(-1, /*keepdim=*/true) + eps).sqrt() * weight;
}

// Libtorch's operations compute it in double, the kernel in float32: rows that fill no vector, and many of them.
TEST(RmsNorm, IsTheFormulaWithItsGradients) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    for (const int64_t width : {1, 7, 16, 129}) {
      RmsNorm norm(width, /*eps=*/1e-3);
      norm.to(type);
      const at::NoGradGuard start;
      norm.weight.copy_(random_tensor({width}, 3, type));
      const at::AutoGradMode on(true);
      const Tensor x = random_tensor({5, 33, width}, 2, type).requires_grad_();
      const Tensor slopes = random_tensor({5, 33, width}, 4, type);
      const double tolerance = type == at::kDouble ? 1e-12 : 1e-4;
      const Tensor expected = rms_formula(x, norm.weight, 1e-3);
      const Tensor actual = norm.forward(x);
      EXPECT_TRUE(close(actual, expected, tolerance)) << width;
      const auto wanted = torch::autograd::grad({(expected * slopes).sum()}, {x, norm.weight});
      const auto found = torch::autograd::grad({(actual * slopes).sum()}, {x, norm.weight});
      EXPECT_TRUE(close(found[0], wanted[0], tolerance)) << width;
      EXPECT_TRUE(close(found[1], wanted[1], 20 * tolerance)) << width;  // a sum of 165 rows
    }
  }
}

TEST(RmsNorm, TakesEmptyAndScatteredInput) {
  RmsNorm norm(4, /*eps=*/1e-5);
  initialise(norm, 1);
  EXPECT_EQ(norm.forward(at::zeros({2, 0, 4})).numel(), 0);
  EXPECT_EQ(norm.forward(at::zeros({1, 4})).abs().max().item<float>(), 0.0F);
  const Tensor x = random_tensor({3, 4, 4}, 1, at::kFloat);
  EXPECT_TRUE(close(norm.forward(x.transpose(0, 1)), norm.forward(x).transpose(0, 1), 0));
}

TEST(MakeNorm, GivesTheKindAskedFor) {
  EXPECT_EQ(declared_parameters(*make_norm(NormKind::kLayer, 4, 1e-5)).size(), 2u);
  EXPECT_EQ(declared_parameters(*make_norm(NormKind::kRms, 4, 1e-5)).size(), 1u);
}

}  // namespace
}  // namespace headshare
