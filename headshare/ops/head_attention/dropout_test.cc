// Dropout of attention weights must be the same in every backend.
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

TEST(HeadAttention, DropoutKeepsTheMeanAndFollowsItsSite) {
  const auto site = training_site();
  for (const int64_t T : {20, 260}) {  // reference and blocked
    HeadInputs in = make_inputs({.B = 1, .T = T, .S = 400}, at::kDouble);
    in.problem.value.fill_(1);
    HeadDropout dropout = {.p = 0.25, .site = site.get()};
    EXPECT_EQ(choose_head_backend(in.problem, in.mask, dropout).name, T == 20 ? "reference" : "blocked");
    const Tensor once = attend(in.problem, in.mask, dropout);
    // A row sums to sum_j w_j m_j / (1 - p), with variance p / (1 - p) sum_j w_j^2 < p / (1 - p).
    EXPECT_NEAR(once.mean().item<double>(), 1, 5 * std::sqrt(1.0 / 3 / static_cast<double>(4 * T)));
    EXPECT_GT(once.std().item<double>(), 0.01);
    EXPECT_TRUE(at::equal(once, attend(in.problem, in.mask, dropout)));
    const auto other_site = training_site(/*seed=*/4);
    dropout.site = other_site.get();
    const Tensor other = attend(in.problem, in.mask, dropout);
    EXPECT_GT((once - other).abs().amin({0, 1, 3}).max().item<double>(), 0);
    EXPECT_FALSE(at::equal(once.slice(2, 0, 10), other.slice(2, 0, 10)));
    dropout.site = site.get();
    site->eval();
    EXPECT_TRUE(at::equal(attend(in.problem, in.mask, dropout), attend(in.problem, in.mask, {})));
    site->train();
  }
}

// Every backend has the same mask, forward and backward.
TEST(HeadAttention, BackendsDropTheSameWeights) {
  const auto site = training_site();
  for (const bool shared : {false, true}) {
    const HeadDropout dropout = {.p = 0.3, .site = site.get(), .shared = shared};
    for (const HeadCase& one : head_cases()) {
      if (one.B == 0 || one.T == 0 || one.S == 0) continue;
      HeadInputs exact = make_inputs(one, at::kDouble);
      const std::vector<Tensor> exact_inputs = inputs_of(&exact);
      const Tensor expected = attend_with(kReferenceBackend, exact, dropout);
      const auto expected_gradients = torch::autograd::grad({weighed(expected)}, exact_inputs);
      for (const HeadBackend& backend : head_backends()) {
        HeadInputs in = make_inputs(one, at::kFloat);
        const std::vector<Tensor> inputs = inputs_of(&in);
        if (!can_run(backend, in, dropout)) continue;
        SCOPED_TRACE(join_text(backend.name, " on ", one.name, shared ? ", shared mask" : ""));
        const Tensor actual = attend_with(backend, in, dropout);
        // A weight dropped wrongly moves a result by far more than rounding, even at large scores.
        const double rounding = one.scale > 1 ? 1e-3 : 2e-5;
        EXPECT_TRUE(close(actual, expected, rounding * magnitude(expected)));
        const auto actual_gradients = torch::autograd::grad({weighed(actual)}, inputs);
        for (size_t i = 0; i < inputs.size(); ++i) {
          EXPECT_TRUE(close(actual_gradients[i], expected_gradients[i], rounding * magnitude(expected_gradients[i])))
              << "input " << i;
        }
      }
    }
  }
}

TEST(HeadAttention, DropoutDiffersBetweenBlocks) {
  const auto site = training_site();
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {  // blocked, fused
    HeadInputs in = make_inputs({.B = 1, .T = 256, .S = 64}, type);
    in.problem.query.slice(2, 128).copy_(in.problem.query.slice(2, 0, 128).clone());
    const Tensor out = attend(in.problem, in.mask, {.p = 0.5, .site = site.get()});
    EXPECT_FALSE(at::equal(out.slice(2, 0, 128), out.slice(2, 128)));
  }
}

}  // namespace
}  // namespace headshare
