// Tests the two passes of attention against attend() and its autograd.
#include "headshare/ops/head_attention/passes.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// A layer's key for mask 0 is that of (seed, path, tick) and 0.
HeadDropout keyed_as(const HeadDropout& by_site, uint64_t seed) {
  HeadDropout keyed = by_site;
  keyed.site = nullptr;
  keyed.key = stream_key(stream_key(seed, ""), /*number=*/0);
  return keyed;
}

void expect_same(const Tensor& actual, const Tensor& expected, const char* what) {
  ASSERT_EQ(actual.defined(), expected.defined()) << what;
  EXPECT_TRUE(!actual.defined() || at::equal(actual, expected)) << what;
}

void expect_passes_of_attend(const HeadInputs& given, const HeadDropout& by_site, const HeadDropout& by_key) {
  HeadInputs in = given;
  const std::vector<Tensor> inputs = inputs_of(&in);
  const Tensor expected = attend(in.problem, in.mask, by_site);
  const AttendPass pass = attend_forward(given.problem, given.mask, by_key, /*gradients=*/true);
  EXPECT_FALSE(pass.out.requires_grad());
  expect_same(pass.out, expected.detach(), "out");
  const Tensor slopes = at::linspace(-1, 1, expected.numel(), expected.options().requires_grad(false));
  const ProblemGradients found = attend_backward(given.problem, given.mask, by_key, pass,
                                                 slopes.view(expected.sizes()).to(pass.out.scalar_type()));
  std::vector<Tensor> gradients = {found.query, found.key, found.value};
  if (found.query_shift.defined()) gradients.push_back(found.query_shift);
  if (found.key_bias.defined()) gradients.push_back(found.key_bias);
  if (found.sinks.defined()) gradients.push_back(found.sinks);
  ASSERT_EQ(gradients.size(), inputs.size());
  if (!expected.requires_grad()) {  // nothing to attend to
    for (const Tensor& x : gradients) EXPECT_EQ(x.count_nonzero().item<int64_t>(), 0);
    return;
  }
  const std::vector<Tensor> wanted = torch::autograd::grad({expected}, inputs, {slopes.view(expected.sizes())});
  for (size_t i = 0; i < inputs.size(); ++i) expect_same(gradients[i], wanted[i], "a gradient");
}

TEST(HeadAttentionPasses, AreAttendAndItsGradientsToTheLastBit) {
  const auto site = training_site(/*seed=*/3);
  for (const HeadCase& one : head_cases()) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(join_text(one.name, ", ", type));
      const HeadInputs in = make_inputs(one, type);
      expect_passes_of_attend(in, {}, {});
      const HeadDropout dropout = {.p = 0.3, .site = site.get()};
      expect_passes_of_attend(in, dropout, keyed_as(dropout, /*seed=*/3));
    }
  }
}

TEST(HeadAttentionPasses, ChooseByTheCallersWord) {
  const HeadInputs in = make_inputs({.T = 1, .S = 30, .causal = true}, at::kFloat);
  EXPECT_EQ(attend_forward(in.problem, in.mask, {}, /*gradients=*/false).backend->name, "decode");
  EXPECT_EQ(attend_forward(in.problem, in.mask, {}, /*gradients=*/true).backend->name, "fused");
}

TEST(HeadAttentionPasses, TensorsThatDoNotFitAreRefused) {
  const auto refused = [](auto change) {
    HeadInputs in = make_inputs({.Hq = 1, .Hk = 1, .shift = true, .key_bias = true, .alibi = true}, at::kFloat);
    change(&in);
    EXPECT_THROW(attend_forward(in.problem, in.mask, {}, /*gradients=*/true), Error);
  };
  refused([](HeadInputs* in) { in->problem.key_bias = in->problem.key_bias.slice(2, 1); });
  refused([](HeadInputs* in) { in->problem.query_shift = in->problem.query_shift.slice(0, 1); });
  refused([](HeadInputs* in) { in->mask.alibi_slopes = in->mask.alibi_slopes.slice(0, 1); });
  refused([](HeadInputs* in) { in->problem.query = in->problem.query.to(at::kLong); });
  refused([](HeadInputs* in) { in->problem.heads = 0; });
  refused([](HeadInputs* in) { in->problem.value = in->problem.value.slice(3, 0, 0); });
  refused([](HeadInputs* in) { in->problem.value = in->problem.value.to(at::kMeta); });
}

}  // namespace
}  // namespace headshare
