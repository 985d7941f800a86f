#include "headshare/ops/linear.h"

#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/packed_weights.h"
#include "headshare/ops/product.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using torch::autograd::variable_list;

TEST(Linear, IsXTimesTransposedWeightPlusBias) {
  Linear linear(3, 2, Bias::kYes, Init::normal(1));
  linear->to(at::kDouble);
  initialise(*linear, 1);
  const at::NoGradGuard no_grad;
  linear->bias.copy_(at::tensor({5.0, -7.0}));
  const Tensor x = random_tensor({2, 4, 3}, 2);
  const Tensor y = linear->forward(x);
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 4, 2}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 4; ++t) {
      for (int64_t out = 0; out < 2; ++out) {
        double sum = linear->bias[out].item<double>();
        for (int64_t in = 0; in < 3; ++in) sum += x[b][t][in].item<double>() * linear->weight[out][in].item<double>();
        EXPECT_NEAR(y[b][t][out].item<double>(), sum, 1e-14);
      }
    }
  }
}

// The matrices are large enough for products in blocks.
TEST(Linear, GradientsAreThoseOfLibtorch) {
  const Tensor x = random_tensor({3, 70, 130}, 1, at::kFloat).requires_grad_();
  const Tensor weight = random_tensor({150, 130}, 2, at::kFloat).requires_grad_();
  const Tensor bias = random_tensor({150}, 3, at::kFloat).requires_grad_();
  const Tensor slopes = random_tensor({3, 70, 150}, 4, at::kFloat);
  const auto check = [&](const Tensor& actual, const Tensor& expected, const variable_list& inputs) {
    EXPECT_TRUE(close(actual, expected, 1e-4));
    const auto found = torch::autograd::grad({(actual * slopes).sum()}, inputs);
    const auto wanted = torch::autograd::grad({(expected * slopes).sum()}, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(close(found[i], wanted[i], 1e-3));
  };
  check(linear_map(x, weight, bias), at::linear(x, weight, bias), {x, weight, bias});
  check(linear_map(x, weight), at::linear(x, weight), {x, weight});
  check(linear_map(x, weight.detach(), bias), at::linear(x, weight, bias), {x, bias});
  // Neither the input nor the gradient (of a sum: expanded) has contiguous rows.
  const Tensor turned = x.transpose(0, 1);
  check(linear_map(turned, weight, bias).transpose(0, 1), at::linear(x, weight, bias), {x, weight, bias});
  const Tensor one = torch::autograd::grad({linear_map(x, weight, bias).sum()}, {weight})[0];
  EXPECT_TRUE(close(one, x.sum(at::IntArrayRef({0, 1})).expand({150, 130}), 1e-3));
}

// Decoding multiplies few rows: of one weight that threads share, of a view of another, and of a small one.
TEST(Linear, OfFewRowsIsThatOfLibtorch) {
  const at::NoGradGuard no_grad;
  const Tensor large = random_tensor({700, 130}, 1, at::kFloat);
  for (const Tensor& weight : {large, large.narrow(1, 3, 60), large.narrow(0, 0, 5)}) {
    const Tensor bias = random_tensor({weight.size(0)}, 2, at::kFloat);
    for (const int64_t rows : {1, 2, 7, 8}) {
      const Tensor x = random_tensor({rows, 2, weight.size(1)}, 3, at::kFloat).select(1, 1);
      const Tensor y = linear_map(x, weight, bias);
      EXPECT_TRUE(close(y, at::linear(x, weight, bias), 1e-4));
      EXPECT_TRUE(at::equal(linear_map(x.narrow(0, 0, 1), weight, bias), y.narrow(0, 0, 1)));
      EXPECT_TRUE(close(linear_map(x, weight), at::linear(x, weight), 1e-4));
    }
    EXPECT_EQ(linear_map(at::empty({0, weight.size(1)}), weight).size(1), weight.size(0));
  }
}

TEST(LinearOfGelu, IsTheTwoAfterAnother) {
  // One width is multiplied in blocks, the other is too small for them.
  for (const int64_t in : {130, 8}) {
    const Tensor x = random_tensor({3, 70, in}, 1, at::kFloat).requires_grad_();
    const Tensor weight = random_tensor({150, in}, 2, at::kFloat).requires_grad_();
    const Tensor bias = random_tensor({150}, 3, at::kFloat).requires_grad_();
    const Tensor slopes = random_tensor({3, 70, 150}, 4, at::kFloat);
    for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
      const auto check = [&](const Tensor& actual, const Tensor& expected, const variable_list& inputs,
                             double tolerance = 0) {
        EXPECT_TRUE(at::equal(actual, expected));
        const auto found = torch::autograd::grad({(actual * slopes).sum()}, inputs);
        const auto wanted = torch::autograd::grad({(expected * slopes).sum()}, inputs);
        for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(close(found[i], wanted[i], tolerance));
      };
      const Tensor activated = gelu(x, form);
      check(linear_of_gelu(x, form, weight, bias), linear_map(activated, weight, bias), {x, weight, bias});
      check(linear_of_gelu(x, form, weight), linear_map(gelu(x, form), weight), {x, weight});
      check(linear_of_gelu(x.detach(), form, weight), linear_map(activated.detach(), weight), {weight});
      check(linear_of_gelu(x, form, weight.detach()), linear_map(gelu(x, form), weight.detach()), {x});
      const Tensor turned = linear_of_gelu(x.transpose(0, 1), form, weight).transpose(0, 1);
      check(turned, linear_map(gelu(x, form), weight), {x, weight}, 1e-3);  // sums over rows in another order
    }
  }
}

// No gradient is wanted here; the weights that are packed once stay as they were then.
TEST(Linear, PackedWeightsGiveTheSameBits) {
  const Tensor x = random_tensor({3, 70, 130}, 1, at::kFloat).transpose(0, 1);
  const Tensor weight = random_tensor({150, 130}, 2, at::kFloat).requires_grad_();
  const Tensor bias = random_tensor({150}, 3, at::kFloat);
  const auto maps = [&] {
    return variable_list{linear_map(x, weight, bias), linear_map(x, weight),
                         linear_of_gelu(x, GeluForm::kErf, weight, bias)};
  };
  const variable_list wanted = maps();
  if (!multiplies_in_blocks(weight, 210, 130, 150)) GTEST_SKIP() << "no AVX-512: nothing is packed";
  PackedWeights packed;
  const UsePackedWeights use(&packed);
  const auto equal_all = [&] {
    const variable_list found = maps();
    for (size_t i = 0; i < found.size(); ++i) {
      if (!at::equal(found[i], wanted[i])) return false;
    }
    return true;
  };
  {
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(equal_all());
    weight.zero_();
    EXPECT_TRUE(equal_all());
  }
  EXPECT_FALSE(equal_all());  // with gradients weights are read anew
}

// Values that are kept and handed on are bfloat16; between, nothing is rounded.
TEST(Linear, UnderAutocastProductsWidenWhereThatIsFaster) {
  const Tensor weight = random_tensor({150, 130}, 2, at::kFloat).requires_grad_();
  const Tensor bias = random_tensor({150}, 3, at::kFloat).requires_grad_();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = random_tensor({3, 70, 130}, 1, type).requires_grad_();
    const Tensor slopes = random_tensor({3, 70, 150}, 4, at::kBFloat16);
    const Tensor wide = x.detach().to(at::kFloat).requires_grad_();
    const auto check = [&](const auto& map) {
      const Tensor exact = map(wide);
      const auto wanted = torch::autograd::grad({exact}, {wide, weight, bias}, {slopes.to(at::kFloat)});
      const WidenedProducts forced(true);
      const ComputeIn bf16(Precision::kBf16, at::kCPU);
      const Tensor found = map(x);
      EXPECT_TRUE(at::equal(found, exact.to(at::kBFloat16)));
      const auto gradients = torch::autograd::grad({found}, {x, weight, bias}, {slopes});
      EXPECT_TRUE(at::equal(gradients[0], wanted[0].to(type)));
      for (const size_t i : {1, 2}) EXPECT_TRUE(at::equal(gradients[i], wanted[i]));
    };
    check([&](const Tensor& in) { return linear_map(in, weight, bias); });
    check([&](const Tensor& in) { return linear_of_gelu(in, GeluForm::kErf, weight, bias); });
  }
}

TEST(Linear, UnderAutocastProductsAreThoseOfLibtorchElse) {
  const WidenedProducts forced(false);
  const ComputeIn bf16(Precision::kBf16, at::kCPU);
  const Tensor x = random_tensor({70, 130}, 1, at::kFloat), weight = random_tensor({150, 130}, 2, at::kFloat);
  EXPECT_TRUE(at::equal(linear_map(x, weight), at::linear(x, weight)));
  EXPECT_EQ(linear_map(x, weight).scalar_type(), at::kBFloat16);
}

// The backward pass runs outside of ComputeIn, as that of a training step does.
TEST(Linear, MultipliesInHalvesForwardAndBackward) {
  const Tensor x = random_tensor({210, 130}, 1, at::kFloat).requires_grad_();
  const Tensor weight = random_tensor({150, 130}, 2, at::kFloat).requires_grad_();
  const Tensor slopes = random_tensor({210, 150}, 4, at::kFloat);
  const auto forward = [&] {
    const ComputeIn in_halves(Precision::kBf16x3, at::kCPU);
    return linear_map(x, weight);
  };
  const Tensor y = forward();
  const auto gradients = torch::autograd::grad({y}, {x, weight}, {slopes});
  const at::NoGradGuard no_grad;
  const auto product = [](const Tensor& a, const Tensor& b) {
    const Tensor c = at::empty({a.size(0), b.size(1)});
    multiply(a, b, c, Into::kReplace, FloatProducts::kBf16x3);
    return c;
  };
  EXPECT_TRUE(at::equal(y, product(x, weight.t())));
  EXPECT_TRUE(at::equal(gradients[0], product(slopes, weight)));
  EXPECT_TRUE(at::equal(gradients[1], product(slopes.t(), x)));
  PackedWeights packed;
  const UsePackedWeights use(&packed);
  EXPECT_TRUE(at::equal(forward(), y));
}

// For the gradients x is enough; gelu(x) would be as much again.
TEST(LinearOfGelu, KeepsNothingBesideItsInput) {
  const Tensor x = random_tensor({512, 256}, 1, at::kFloat).requires_grad_();
  const Tensor weight = random_tensor({64, 256}, 2, at::kFloat).requires_grad_();
  const AllocationMeter meter;
  const Tensor y = linear_of_gelu(x, GeluForm::kErf, weight);
  EXPECT_LT(meter.now(), static_cast<int64_t>(y.nbytes() + x.nbytes() / 2));
}

TEST(Linear, WithoutBiasDeclaresNone) {
  const Linear linear(3, 2, Bias::kNo, Init::normal(1));
  EXPECT_FALSE(linear->bias.defined());
  EXPECT_EQ(declared_parameters(*linear).size(), 1U);
}

TEST(Linear, InertBiasIsStoredButNotAdded) {
  Linear linear(3, 2, Bias::kInert, Init::normal(1));
  initialise(*linear, 1);
  const std::vector<Declared> all = declared_parameters(*linear);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].name, "bias");
  EXPECT_EQ(all[1].role, Role::kInert);
  {
    const at::NoGradGuard no_grad;
    all[1].tensor.fill_(1e9);
  }
  EXPECT_EQ(linear->forward(at::zeros({1, 3})).abs().max().item<float>(), 0.0F);
}

TEST(Linear, DecaysItsWeightAndNotItsBias) {
  const Linear linear(3, 2, Bias::kYes, Init::normal(1));
  const std::vector<Declared> all = declared_parameters(*linear);
  EXPECT_EQ(all[0].decay, Decay::kYes);
  EXPECT_EQ(all[1].decay, Decay::kNo);
}

}  // namespace
}  // namespace headshare
