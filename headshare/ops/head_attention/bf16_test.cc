// Tests the attention core under autocast.
#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// The inputs are as under autocast: projections in bf16, queries in float again once a parameter of the scheme has met
// them.
void expect_all_bf16(const HeadCase& one) {
  const Tensor expected = attend_with(kReferenceBackend, make_inputs(one, at::kDouble));
  HeadInputs in = make_inputs(one, at::kFloat);
  in.problem.key = in.problem.key.to(at::kBFloat16);
  in.problem.value = in.problem.value.to(at::kBFloat16);
  EXPECT_THAT(std::string(choose_head_backend(in.problem, in.mask, {}).name),
              testing::AnyOf("fused", "factorised", "decode"));
  const Tensor actual = attend(in.problem, in.mask, {});
  EXPECT_EQ(actual.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(close(actual, expected, 0x1p-5 * magnitude(expected)));
  if (one.T == 1) return;
  const std::vector<Tensor> inputs = inputs_of(&in);
  const auto gradients = torch::autograd::grad({weighed(attend(in.problem, in.mask, {}))}, inputs);
  const auto exact = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(gradients[i].scalar_type(), inputs[i].scalar_type());
    EXPECT_TRUE(close(gradients[i], exact[i], 0x1p-5 * magnitude(exact[i]))) << "input " << i;
  }
}

TEST(HeadAttention, OneBf16InputMakesItAllBf16) {
  const HeadCase cases[] = {{.name = "mha", .T = 70, .S = 70, .causal = true},
                            {.name = "mhe_add", .Hq = 1, .Hk = 1, .Hv = 1, .T = 70, .S = 70, .shift = true},
                            {.name = "odd", .T = 70, .S = 70, .Dk = 7, .Dv = 5, .causal = true},
                            {.name = "decode", .Hk = 1, .Hv = 1, .T = 1, .S = 70, .key_bias = true}};
  for (const bool widened : ways_to_multiply_bf16()) {
    const WidenedProducts forced(widened);
    for (const HeadCase& one : cases) {
      SCOPED_TRACE(join_text(one.name, widened ? ", widened" : ""));
      expect_all_bf16(one);
    }
  }
}

// eQ . k is large and decides: rounded to bf16 it would move weights by parts in ten.
TEST(HeadAttention, BiasesAreFloatUnderAutocastToo) {
  const HeadCase one{.name = "mhe_add", .Hq = 1, .Hk = 1, .Hv = 1, .T = 3, .S = 70, .scale = 1, .shift = true};
  HeadInputs in = make_inputs(one, at::kFloat);
  in.problem.query_shift = in.problem.query_shift.detach() * 30;
  const Tensor expected = attend_with(kReferenceBackend, in);
  const ComputeIn computing(Precision::kBf16, at::kCPU);
  for (const HeadBackend* backend : {&kFusedBackend, &kFactorisedBackend}) {
    SCOPED_TRACE(backend->name);
    EXPECT_TRUE(close(attend_with(*backend, in), expected, 1e-3 * magnitude(expected)));
  }
}

}  // namespace
}  // namespace headshare
