#include "headshare/ops/gelu.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace headshare {
namespace {

Tensor drawn(at::IntArrayRef sizes, at::ScalarType type) { return at::randn(sizes, at::kDouble).mul_(2).to(type); }

// Returns the value and the gradient of libtorch's formula in double.
std::pair<Tensor, Tensor> exact(const Tensor& x, const Tensor& dy, bool tanh) {
  const Tensor input = x.detach().to(at::kDouble).requires_grad_();
  const Tensor y = at::gelu(input, tanh ? "tanh" : "none");
  return {y.detach(), torch::autograd::grad({y}, {input}, {dy.to(at::kDouble)})[0]};
}

TEST(Gelu, IsLibtorchsInEveryTypeAndShape) {
  const std::pair<at::ScalarType, double> types[] = {{at::kFloat, 1e-6}, {at::kBFloat16, 0x1p-7}, {at::kDouble, 1e-15}};
  for (const auto& [type, tolerance] : types) {
    for (const GeluForm form : {GeluForm::kTanh, GeluForm::kErf}) {
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {0}, {1}, {3, 17}, {5, 2049}, {2, 3, 4096}}) {
        const Tensor x = drawn(sizes, type).requires_grad_();
        const Tensor dy = drawn(sizes, type);
        const Tensor y = gelu(x, form);
        const Tensor dx = torch::autograd::grad({y}, {x}, {dy})[0];
        EXPECT_EQ(y.scalar_type(), type);
        EXPECT_EQ(y.sizes(), x.sizes());
        const auto [value, slope] = exact(x, dy, form == GeluForm::kTanh);
        EXPECT_TRUE(at::allclose(y.to(at::kDouble), value, tolerance, tolerance));
        EXPECT_TRUE(at::allclose(dx.to(at::kDouble), slope, 4 * tolerance, 4 * tolerance));
      }
    }
  }
}

TEST(Gelu, TakesWhatIsNotContiguous) {
  const Tensor x = drawn({40, 30}, at::kFloat);
  EXPECT_TRUE(at::equal(gelu(x.t(), GeluForm::kErf), gelu(x, GeluForm::kErf).t()));
  const Tensor whole = x.clone().requires_grad_();
  gelu(whole.t(), GeluForm::kTanh).sum().backward();  // a gradient without strides
  const auto [value, slope] = exact(x, at::ones_like(x), /*tanh=*/true);
  EXPECT_TRUE(at::allclose(whole.grad().to(at::kDouble), slope, 1e-5, 1e-6));
}

}  // namespace
}  // namespace headshare
