#include "headshare/ops/made_again.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// A sub-layer reads a value twice, and both products save it.
struct Case {
  Tensor x = random_tensor({64, 64}, 1).requires_grad_();
  Tensor first = random_tensor({64, 64}, 2).requires_grad_(), second = random_tensor({64, 64}, 3).requires_grad_();

  Tensor of(const Tensor& value) const { return at::mm(value, first) + at::mm(value, second); }
  std::vector<Tensor> gradients(const Tensor& result) const {
    return torch::autograd::grad({result.sum()}, {x, first, second});
  }
};

TEST(MadeAgain, GradientsAreTheSameBits) {
  const Case c;
  const std::vector<Tensor> expected = c.gradients(c.of(c.x.exp() * 2));
  const Tensor value = c.x.exp() * 2;
  int calls = 0;
  const Tensor result = made_again(
      value, {c.x},
      [&, kept = c.x.detach()] {
        EXPECT_FALSE(at::GradMode::is_enabled());
        ++calls;
        return kept.exp() * 2;
      },
      c.of(value));
  EXPECT_EQ(value.storage().nbytes(), 0U);
  if (emptied_values_refuse_reading()) {
    EXPECT_ANY_THROW(value.sum().item<double>());
  }
  EXPECT_EQ(calls, 0);
  const std::vector<Tensor> found = c.gradients(result);
  EXPECT_EQ(calls, 1);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

TEST(MadeAgain, AGraphThatIsRetainedRunsTwice) {
  const Case c;
  const Tensor value = c.x.cos();
  const Tensor sum = made_again(
                         value, {c.x}, [kept = c.x.detach()] { return kept.cos(); }, c.of(value))
                         .sum();
  const auto once = torch::autograd::grad({sum}, {c.first}, {}, /*retain_graph=*/true);
  EXPECT_TRUE(at::equal(torch::autograd::grad({sum}, {c.first})[0], once[0]));
}

TEST(MadeAgain, MemoryIsFreeBetweenThePasses) {
  const Case c;
  AllocationMeter meter;
  Tensor value = c.x.cos();
  Tensor result = c.of(value);
  const int64_t before = meter.now();
  result = made_again(
      value, {c.x}, [kept = c.x.detach()] { return kept.cos(); }, result);
  EXPECT_EQ(before - meter.now(), value.numel() * 8);
  value = Tensor();
  c.gradients(result);
  result = Tensor();
  EXPECT_EQ(meter.now(), 0);
}

TEST(MadeAgain, WhatNobodySavedIsLeftAlone) {
  const Case c;
  const auto never = []() -> Tensor { throw std::logic_error("nothing needs it"); };
  const Tensor value = c.x.detach().exp();
  const Tensor unsaved = value + c.x;
  EXPECT_TRUE(made_again(value, {}, never, unsaved).is_same(unsaved));
  const Tensor constant = value + 1;
  EXPECT_TRUE(made_again(value, {}, never, constant).is_same(constant));
  const at::NoGradGuard no_grad;
  const Tensor without = c.of(value);
  EXPECT_TRUE(made_again(value, {}, never, without).is_same(without));
  EXPECT_GT(value.sum().item<double>(), 0);
}

TEST(MadeAgain, OtherValuesAreRefused) {
  const Case c;
  const Tensor value = c.x.cos();
  const Tensor result = made_again(
      value, {}, [] { return at::zeros({3}, at::kDouble); }, c.of(value));
  EXPECT_THROW(c.gradients(result), Error);
}

TEST(MadeAgain, WhatItReadMustStayAsItIs) {
  const Case c;
  const Tensor read = c.x.detach().clone(), undefined;
  const Tensor value = read.cos() * c.x;
  const Tensor result = made_again(
      value, {undefined, read}, [&] { return read.cos() * c.x; }, c.of(value));
  read.add_(1);
  EXPECT_THROW(c.gradients(result), c10::Error);
}

}  // namespace
}  // namespace headshare
