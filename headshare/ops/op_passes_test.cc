// Tests the passes without autograd against the operations that are made of them.
#include "headshare/ops/op_passes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/ops/linear.h"
#include "headshare/ops/norm.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

Tensor drawn(at::IntArrayRef sizes, uint64_t key, at::ScalarType type) {
  return at::empty(sizes, at::kFloat).normal_(0, 1, keyed_generator(at::kCPU, key)).to(type);
}

TEST(OpPasses, GeluIsThatOfAutograd) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Tensor x = drawn({5, 700}, 1, type), dy = drawn({5, 700}, 2, type);
    const Tensor learned = x.clone().requires_grad_();
    const Tensor y = gelu(learned, GeluForm::kTanh);
    EXPECT_TRUE(at::equal(gelu_forward(x, GeluForm::kTanh), y.detach()));
    const Tensor wanted = torch::autograd::grad({y}, {learned}, {dy})[0];
    EXPECT_TRUE(at::equal(gelu_backward(x, dy, GeluForm::kTanh), wanted));
  }
}

TEST(OpPasses, RmsNormIsThatOfAutograd) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Tensor x = drawn({6, 7, 24}, 1, type), dy = drawn({6, 7, 24}, 2, type);
    RmsNorm norm(24, 1e-5);
    const at::ScalarType weights = type == at::kDouble ? type : at::kFloat;
    norm.weight = drawn({24}, 3, weights).requires_grad_();
    const Tensor learned = x.clone().requires_grad_();
    const Tensor y = norm.forward(learned);
    const Tensor weight = norm.weight.detach();
    const RmsNormPass pass = rms_norm_forward(x, weight, 1e-5);
    EXPECT_TRUE(at::equal(pass.y, y.detach()));
    EXPECT_EQ(pass.inverse.sizes(), at::IntArrayRef({42}));
    const auto wanted = torch::autograd::grad({y}, {learned, norm.weight}, {dy});
    const RmsNormGradients found = rms_norm_backward(x, weight, pass, dy, 1e-5);
    EXPECT_TRUE(at::equal(found.x, wanted[0]));
    EXPECT_TRUE(at::equal(found.weight, wanted[1]));
  }
}

TEST(OpPasses, DropoutOfEveryTypeFollowsItsKey) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Tensor ones = at::ones({50, 40}, type);
    const Tensor once = dropout_pass(ones, 0.25, /*key=*/7);
    EXPECT_TRUE(at::equal(once, dropout_pass(ones, 0.25, /*key=*/7)));
    EXPECT_FALSE(at::equal(once, dropout_pass(ones, 0.25, /*key=*/8)));
    EXPECT_NEAR(once.to(at::kDouble).mean().item<double>(), 1, 0.07);
  }
}

TEST(OpPasses, LossOfSomeRowsIsThatOfAutograd) {
  const Tensor hidden = drawn({9, 6}, 1, at::kFloat), embedding = drawn({30, 6}, 2, at::kFloat);
  const Tensor bias = drawn({30}, 3, at::kFloat);
  Tensor targets = at::arange(9);
  targets[4] = -100;
  const Tensor h = hidden.clone().requires_grad_(), e = embedding.clone().requires_grad_();
  const Tensor b = bias.clone().requires_grad_();
  const Tensor loss = cross_entropy_sum(h, e, targets, /*ignored=*/-100, b);
  const LossPass pass =
      cross_entropy_pass(hidden, embedding, targets, -100, bias, {.hidden = true, .embedding = true, .bias = true});
  EXPECT_TRUE(at::equal(pass.sum, loss.detach()));
  const auto wanted = torch::autograd::grad({loss}, {h, e, b});
  EXPECT_TRUE(at::equal(pass.hidden, wanted[0]));
  EXPECT_TRUE(at::equal(pass.embedding, wanted[1]));
  EXPECT_TRUE(at::equal(pass.bias, wanted[2]));
}

}  // namespace
}  // namespace headshare
