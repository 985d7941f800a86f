// These tests compare gradients of every scheme with the literal formula's for all elements, and with finite
// differences for some elements of each tensor.
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <algorithm>

#include "headshare/attention/testing.h"

namespace headshare {
namespace {

enum class Use { kSelf, kMasked, kCross };

class GradientCheck {
 public:
  GradientCheck(const SchemeCase& one, Use use)
      : use_(use),
        layer_(random_attention(one.options)),
        x_(random_tensor({2, 3, one.options.d_model}, 31).requires_grad_()),
        y_(random_tensor({use == Use::kCross ? 1 : 2, 4, one.options.d_model}, 32).requires_grad_()),
        weights_(random_tensor({2, 3, one.options.d_model}, 33)) {
    if (use == Use::kSelf) return;
    const int64_t S = use == Use::kCross ? 4 : 3;
    visible_ = at::ones({use == Use::kCross ? 1 : 2, S}, at::kBool);
    visible_[0][0] = false;  // masked: the first query sees nothing
  }

  void check_formula_and_differences() {
    check_formula();
    check_differences();
  }

  void check_formula() {
    analytic_ = gradients(loss());
    const auto expected = gradients(formula_loss());
    const auto roles_by_name = roles();
    for (const auto& [name, gradient] : analytic_) {
      ASSERT_TRUE(expected.at(name).defined()) << name;
      if (roles_by_name.count(name) > 0 && roles_by_name.at(name) == Role::kInert) {
        EXPECT_FALSE(gradient.defined()) << name;
        EXPECT_LT(expected.at(name).abs().max().item<double>(), 1e-13) << name;
        continue;
      }
      ASSERT_TRUE(gradient.defined()) << name;
      EXPECT_TRUE(same(gradient, expected.at(name))) << name;
      EXPECT_GT(gradient.abs().max().item<double>(), 1e-6) << name << " should matter";
    }
  }

 private:
  Tensor loss() const {
    const HeadMask mask = {.causal = use_ != Use::kCross, .visible_keys = visible_};
    return ((use_ == Use::kCross ? layer_->cross(x_, y_, mask) : layer_->self(x_, mask)) * weights_).sum();
  }

  Tensor formula_loss() const {
    const bool cross = use_ == Use::kCross;
    return (NaiveAttention(*layer_).run(x_, cross ? y_ : x_, /*causal=*/!cross, visible_) * weights_).sum();
  }

  std::map<std::string, Tensor> inputs() const {
    std::map<std::string, Tensor> inputs = parameters_of(layer_->scheme());
    inputs["x"] = x_;
    if (use_ == Use::kCross) inputs["y"] = y_;
    return inputs;
  }

  std::map<std::string, Tensor> gradients(const Tensor& loss) const {
    std::vector<Tensor> tensors;
    const auto named = inputs();
    for (const auto& [name, tensor] : named) tensors.push_back(tensor);
    const auto found = torch::autograd::grad({loss}, tensors, {}, /*retain_graph=*/std::nullopt,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    std::map<std::string, Tensor> gradients;
    size_t i = 0;
    for (const auto& [name, tensor] : named) gradients[name] = found[i++];
    return gradients;
  }

  std::map<std::string, Role> roles() const {
    std::map<std::string, Role> roles;
    for (const Declared& one : declared_parameters(layer_->scheme())) roles[one.name] = one.role;
    return roles;
  }

  void check_differences() {
    const at::NoGradGuard no_grad;
    // Central differences of fourth order have two errors: truncation, kStep^4 times the fifth derivative, which norms
    // of two narrow values make large, and rounding, 1e-16 / kStep.
    constexpr double kStep = 1e-4;
    for (const auto& [name, tensor] : inputs()) {
      if (!analytic_.at(name).defined()) continue;
      const Tensor gradient = analytic_.at(name).contiguous();
      double* element = tensor.data_ptr<double>();
      for (int64_t i = 0; i < tensor.numel(); i += std::max<int64_t>(1, tensor.numel() / 5)) {
        const double middle = element[i];
        const auto difference = [&](double step) {
          element[i] = middle + step;
          const double up = loss().item<double>();
          element[i] = middle - step;
          const double down = loss().item<double>();
          element[i] = middle;
          return (up - down) / (2 * step);
        };
        const double expected = (4 * difference(kStep) - difference(2 * kStep)) / 3;
        EXPECT_NEAR(gradient.data_ptr<double>()[i], expected, 1e-8 * std::max(1.0, std::abs(expected)))
            << name << " " << i;
      }
    }
  }

  Use use_;
  Attention layer_;
  Tensor x_, y_, weights_, visible_;
  std::map<std::string, Tensor> analytic_;
};

void check_all(Use use) {
  for (const SchemeCase& one : scheme_variants()) {
    if (use == Use::kCross && needs_one_sequence(one.options)) continue;
    SCOPED_TRACE(one.name);
    // Differences take most of the time. They check what is plain and what has everything, and the formula all.
    const auto parts = std::count(one.name.begin(), one.name.end(), '+');
    GradientCheck check(one, use);
    parts == 0 || parts == 3 ? check.check_formula_and_differences() : check.check_formula();
  }
}

TEST(Gradients, OfSelfAttention) { check_all(Use::kSelf); }
TEST(Gradients, OfSelfAttentionWithPaddingAndADeadQuery) { check_all(Use::kMasked); }
TEST(Gradients, OfCrossAttentionWithSharedMemory) { check_all(Use::kCross); }

TEST(Gradients, InThePlainBackend) {
  const ScopedEnvironment forced("HEADSHARE_BACKEND", "reference");
  for (const SchemeCase& one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    GradientCheck(one, Use::kMasked).check_formula_and_differences();
  }
}

// The parameters that cannot matter are listed in docs/mathematics.md#inert-and-effective-parameters.
TEST(Gradients, InertParametersAreKeyBiasesAndTheKeyEmbeddingOfMheAdd) {
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    const Attention layer(one.options);
    const Parameters parameters = parameters_of(layer->scheme());
    std::vector<std::string> inert;
    for (const Declared& parameter : declared_parameters(layer->scheme())) {
      if (parameter.role == Role::kInert) inert.push_back(parameter.name);
    }
    std::vector<std::string> expected;
    if (!one.options.rotary && !one.options.sinks && !one.options.kv_shift) {
      expected = scheme_formula(one.options.scheme).inert;
      const bool normed = one.options.qk_norm;  // an added bias changes a normed key
      if (parameters.count("key.bias") > 0 && !normed) expected.emplace_back("key.bias");
    }
    EXPECT_EQ(inert, expected);
  }
}

}  // namespace
}  // namespace headshare
