// The wide form must be the plain formula in float64, with its gradients, and headshare's kernel of that form must be
// it.
#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// Compares another backend with the wide form in float64: values and the gradients of all inputs. Returns whether both
// take the case.
bool compare_wide(const HeadBackend& other, const HeadCase& one, at::ScalarType type, const HeadDropout& dropout) {
  HeadInputs exact = make_inputs(one, at::kDouble);
  HeadInputs in = make_inputs(one, type);
  const std::vector<Tensor> exact_inputs = inputs_of(&exact), inputs = inputs_of(&in);
  if (!can_run(kWideBackend, exact, dropout) || !can_run(other, in, dropout)) return false;
  SCOPED_TRACE(join_text(other.name, " on ", one.name, dropout.active() ? ", dropped" : ""));
  const double rounding = type == at::kDouble ? 1e-11 : one.scale > 1 ? 1e-3 : 2e-5;
  const Tensor expected = kWideBackend.run(exact.problem, exact.mask, dropout),
               actual = attend_with(other, in, dropout);
  EXPECT_TRUE(close(actual, expected, rounding * magnitude(expected)));
  const auto wanted = torch::autograd::grad({weighed(expected)}, exact_inputs);
  const auto found = torch::autograd::grad({weighed(actual)}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(close(found[i], wanted[i], rounding * magnitude(wanted[i]))) << "input " << i;
  }
  return true;
}

TEST(WideAttention, IsThePlainFormulaAndTheOracleOfTheKernel) {
  const auto site = training_site();
  int with_reference = 0, with_kernel = 0;
  for (const bool drops : {false, true}) {
    const HeadDropout dropout = {.p = drops ? 0.3 : 0, .site = site.get(), .shared = true};
    for (const HeadCase& one : head_cases()) {
      if (one.B == 0 || one.T == 0 || one.S == 0) continue;
      with_reference += compare_wide(kReferenceBackend, one, at::kDouble, dropout) ? 1 : 0;
      with_kernel += compare_wide(kFactorisedBackend, one, at::kFloat, dropout) ? 1 : 0;
    }
  }
  EXPECT_GE(with_reference, 6);
  EXPECT_GE(with_kernel, 6);
}

TEST(WideAttention, RunsOnCuda) {
  HS_NEEDS_CUDA();
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    const HeadInputs in = make_inputs(one, at::device(at::kCUDA).dtype(at::kDouble));
    if (!can_run(kWideBackend, in)) continue;
    SCOPED_TRACE(one.name);
    EXPECT_TRUE(same(kWideBackend.run(in.problem, in.mask, {}), attend_with(kReferenceBackend, in)));
  }
}

}  // namespace
}  // namespace headshare
