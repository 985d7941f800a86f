// Tests the gradients of the attention core: against finite differences, among backends, and in how much memory.
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

TEST(HeadAttention, GradientsEqualFiniteDifferences) {
  for (const HeadCase& one : head_cases()) {
    if (one.B * one.H * one.T * one.S > 200 || one.scale > 1) continue;
    SCOPED_TRACE(one.name);
    HeadInputs in = make_inputs(one, at::kDouble);
    std::vector<Tensor> inputs = inputs_of(&in);
    const Tensor out = weighed(attend(in.problem, in.mask, {}));
    if (!out.requires_grad()) continue;  // nothing to attend to
    const std::vector<Tensor> analytic = torch::autograd::grad({out}, inputs);
    const at::NoGradGuard no_grad;
    constexpr double kStep = 1e-5;
    for (size_t n = 0; n < inputs.size(); ++n) {
      double* element = inputs[n].data_ptr<double>();
      for (int64_t i = 0; i < inputs[n].numel(); i += 7) {
        const double middle = element[i];
        element[i] = middle + kStep;
        const double up = weighed(attend(in.problem, in.mask, {})).item<double>();
        element[i] = middle - kStep;
        const double down = weighed(attend(in.problem, in.mask, {})).item<double>();
        element[i] = middle;
        EXPECT_NEAR(analytic[n].contiguous().data_ptr<double>()[i], (up - down) / (2 * kStep), 1e-8) << n << " " << i;
      }
    }
  }
}

TEST(HeadAttention, BackendsAgreeOnGradients) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    const std::vector<Tensor> expected = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
    for (const HeadBackend& backend : head_backends()) {
      const HeadInputs in = make_inputs(one, at::kDouble);
      if (!can_run(backend, in)) continue;
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      const std::vector<Tensor> actual = gradients_of(backend, in);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(actual[i], expected[i], 1e-12 * magnitude(expected[i]))) << "input " << i;
      }
    }
  }
}

// In float the plain formula is wrong by something; twice that is allowed, and some rounding of the largest.
TEST(HeadAttention, GradientsAreAsExactInFloatAsThePlainFormula) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    const std::vector<Tensor> expected = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
    const std::vector<Tensor> plain = gradients_of(kReferenceBackend, make_inputs(one, at::kFloat));
    for (const HeadBackend& backend : head_backends()) {
      HeadInputs in = make_inputs(one, at::kFloat);
      inputs_of(&in);  // some backends have no gradients, and say so
      if (!can_run(backend, in)) continue;
      if (one.scale > 1 && backend.name == kSdpaBackend.name) continue;  // libtorch rounds worse than this there
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      const std::vector<Tensor> actual = gradients_of(backend, in);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Among exponents of some hundred the plain error itself is a lottery.
        const double tolerance = (one.scale > 1 ? 4 : 2) * distance(plain[i], expected[i]) +
                                 16 * std::numeric_limits<float>::epsilon() * magnitude(expected[i]);
        EXPECT_TRUE(close(actual[i], expected[i], tolerance)) << "input " << i;
      }
    }
  }
}

// The scores of one head, [T, T] floats, are 64 MiB here; with the plain formula the test fails.
TEST(HeadAttention, OurKernelsHoldNoMatrixOfScores) {
  const HeadCase one = {.B = 1, .H = 2, .Hq = 1, .Hk = 1, .Hv = 1, .T = 4096, .S = 4096, .shift = true};
  for (const HeadBackend* backend : {&kFusedBackend, &kFactorisedBackend}) {
    SCOPED_TRACE(backend->name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    ASSERT_TRUE(can_run(*backend, in));
    const AllocationMeter meter;
    gradients_of(*backend, in);
    EXPECT_LT(meter.peak(), one.T * one.S * static_cast<int64_t>(sizeof(float)) / 2);
  }
}

}  // namespace
}  // namespace headshare
