// Tests which backend runs, why others do not, and what none of them takes.
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(HeadAttention, PrefersOurKernelsThenTheFusedForm) {
  const auto chosen = [](const HeadCase& one, at::ScalarType type) {
    const HeadInputs in = make_inputs(one, type);
    return choose_head_backend(in.problem, in.mask, {}).name;
  };
  const HeadCase one_head = {.Hq = 1, .Hk = 1, .Hv = 1, .causal = true, .shift = true, .alibi = true};
  EXPECT_EQ(chosen({.causal = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.T = 129, .Dv = 5, .causal = true, .key_bias = true, .alibi = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.T = 1, .S = 9, .key_bias = true}, at::kFloat), "decode");
  EXPECT_EQ(chosen({.T = 1, .S = 9, .sinks = true}, at::kFloat), "decode");
  EXPECT_EQ(chosen({.Hq = 1, .Hk = 1, .Hv = 1, .T = 129, .shift = true, .sinks = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.T = 4, .S = 9, .padding = Padding::kTail}, at::kFloat), "decode");
  EXPECT_EQ(chosen({.Hq = 1, .Hk = 1, .Hv = 1, .T = 8, .S = 9, .shift = true}, at::kFloat), "decode");
  EXPECT_EQ(chosen({.T = 4, .S = 9, .causal = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.T = 4, .S = 4}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.T = 4, .S = 9, .alibi = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen(one_head, at::kFloat), "factorised");
  EXPECT_EQ(chosen({.Hk = 1, .Hv = 1, .padding = Padding::kTail}, at::kDouble), "sdpa");
  EXPECT_EQ(chosen({.Dv = 5}, at::kDouble), "reference");
  EXPECT_EQ(chosen({.T = 129, .key_bias = true}, at::kDouble), "blocked");
  EXPECT_EQ(chosen({.T = 129, .alibi = true}, at::kDouble), "blocked");
  EXPECT_EQ(chosen({.T = 129, .causal = true, .alibi = true}, at::kDouble), "blocked");
}

TEST(HeadAttention, BackendsSayWhyNot) {
  const HeadInputs in = make_inputs({.Hk = 1, .Dk = 6, .Dv = 5, .key_bias = true, .alibi = true}, at::kFloat);
  const auto site = training_site();
  const auto reasons = kSdpaBackend.why_not(in.problem, in.mask, {.p = 0.1, .site = site.get()});
  EXPECT_THAT(reasons, testing::ElementsAre(HasSubstr("dropout"), HasSubstr("key width 6 and value width 5"),
                                            HasSubstr("keys have 1 heads and values 4"),
                                            HasSubstr("a bias per head and key"), HasSubstr("ALiBi")));
  EXPECT_THAT(kReferenceBackend.why_not(in.problem, in.mask, {}), IsEmpty());
  const HeadInputs open = make_inputs({.Hq = 1, .alibi = true}, at::kDouble);
  EXPECT_THAT(kFactorisedBackend.why_not(open.problem, open.mask, {.p = 0.1, .site = site.get()}),
              testing::ElementsAre(HasSubstr("not Double"), HasSubstr("not 1, 4 and 4"), HasSubstr("not causal"),
                                   HasSubstr("a shared one does")));
  EXPECT_THAT(kFusedBackend.why_not(in.problem, in.mask, {.p = 0.1, .site = site.get(), .first_query = 64}),
              testing::ElementsAre(HasSubstr("begin with query 0, not 64")));
  EXPECT_THAT(kDecodeBackend.why_not(open.problem, open.mask, {.p = 0.1, .site = site.get()}),
              testing::ElementsAre(HasSubstr("not Double"), HasSubstr("up to 4 new queries, not 5"),
                                   HasSubstr("fewer than the 5 keys"), HasSubstr("none may come before another"),
                                   HasSubstr("dropout")));
}

TEST(HeadAttention, BackendsSayTheirDeviceAndGradients) {
  HeadInputs in = make_inputs({.T = 1, .S = 9}, at::kFloat);
  in.problem.query.requires_grad_();
  EXPECT_THAT(kDecodeBackend.why_not(in.problem, in.mask, {}), testing::ElementsAre("it has no gradients"));
  EXPECT_THAT(kFusedBackend.why_not(in.problem, in.mask, {}), IsEmpty());
  const HeadInputs elsewhere = make_inputs({.T = 5, .S = 9}, at::device(at::kMeta).dtype(at::kFloat));
  for (const HeadBackend* backend : {&kDecodeBackend, &kFactorisedBackend, &kFusedBackend}) {
    EXPECT_THAT(backend->why_not(elsewhere.problem, elsewhere.mask, {}),
                testing::Contains("its kernels are for the CPU, not meta"));
  }
  EXPECT_THAT(kReferenceBackend.why_not(elsewhere.problem, elsewhere.mask, {}), IsEmpty());
}

TEST(HeadAttention, ExplainsWhichBackendRuns) {
  const HeadInputs cached = make_inputs({.T = 1, .S = 9}, at::kFloat);
  const BackendChoice decoding = explain_head_backend(cached.problem, cached.mask, {});
  EXPECT_EQ(decoding.backend, "decode");
  EXPECT_THAT(decoding.refused, IsEmpty());
  EXPECT_FALSE(decoding.fused.has_value());
  const HeadInputs doubles = make_inputs({.Hk = 1, .Hv = 1, .causal = true}, at::kDouble);
  const BackendChoice plain = explain_head_backend(doubles.problem, doubles.mask, {});
  EXPECT_EQ(plain.backend, "sdpa");
  EXPECT_EQ(plain.fused, std::optional(true));
  ASSERT_EQ(plain.refused.size(), 3U);
  EXPECT_EQ(plain.refused[2].backend, "fused");
  EXPECT_THAT(plain.refused[2].reasons, testing::ElementsAre(HasSubstr("not Double")));
  const ScopedEnvironment forced("HEADSHARE_BACKEND", "reference");
  const BackendChoice asked = explain_head_backend(cached.problem, cached.mask, {});
  ASSERT_EQ(asked.refused.size(), 5U);
  EXPECT_EQ(asked.refused.front().backend, "decode");
  EXPECT_THAT(asked.refused.front().reasons, IsEmpty());
}

TEST(HeadAttention, BackendsSayWhatTheyMultiply) {
  for (const bool widened : ways_to_multiply_bf16()) {
    const WidenedProducts ways(widened);
    const HeadInputs narrow = make_inputs({.Dk = 6, .Dv = 4}, at::kBFloat16);
    const HeadInputs odd = make_inputs({.Dk = 6, .Dv = 5}, at::kBFloat16);
    for (const HeadBackend* backend : {&kFusedBackend, &kFactorisedBackend}) {
      EXPECT_EQ(backend->products(narrow.problem), widened ? Precision::kFp32 : Precision::kBf16);
      EXPECT_EQ(backend->products(odd.problem), Precision::kFp32);
    }
    for (const HeadBackend* backend : {&kDecodeBackend, &kSdpaBackend, &kBlockedBackend, &kReferenceBackend}) {
      EXPECT_EQ(backend->products(narrow.problem), Precision::kBf16);
    }
  }
  const HeadInputs wide = make_inputs({}, at::kFloat);
  for (const HeadBackend& backend : head_backends()) EXPECT_EQ(backend.products(wide.problem), Precision::kFp32);
  const ComputeIn autocast(Precision::kBf16, at::kCPU);
  EXPECT_EQ(kSdpaBackend.products(wide.problem), Precision::kBf16);
  EXPECT_EQ(kFusedBackend.products(wide.problem), Precision::kFp32);
}

TEST(HeadAttention, ForcedBackendRunsOrExplains) {
  const HeadInputs plain = make_inputs({}, at::kFloat);
  const HeadInputs biased = make_inputs({.key_bias = true}, at::kFloat);
  const auto chosen = [](const HeadInputs& in) { return choose_head_backend(in.problem, in.mask, {}).name; };
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "reference");
    EXPECT_EQ(chosen(plain), "reference");
  }
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "");
    EXPECT_EQ(chosen(plain), "fused");
  }
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "sdpa");
    EXPECT_THAT(error_message([&] { chosen(biased); }),
                testing::AllOf(HasSubstr("HEADSHARE_BACKEND=sdpa cannot run"), HasSubstr("a bias per head and key")));
  }
  const ScopedEnvironment forced("HEADSHARE_BACKEND", "referense");
  EXPECT_THAT(
      error_message([&] { chosen(plain); }),
      testing::AllOf(HasSubstr("HEADSHARE_BACKEND=referense names no backend"), HasSubstr("did you mean 'reference'"),
                     HasSubstr("decode, factorised, fused, sdpa, blocked, reference")));
}

TEST(HeadAttention, RefusesShapesThatDoNotFit) {
  const auto error_after = [](const std::function<void(HeadInputs*)>& change) {
    HeadInputs in = make_inputs({}, at::kFloat);
    change(&in);
    return error_message([&] { attend(in.problem, in.mask, {}); });
  };
  EXPECT_THAT(
      error_after([](HeadInputs* in) { in->problem.heads = 6; }),
      HasSubstr("attention queries must be [batch, heads, length, width] with a number of heads that divides 6, "
                "not [2, 4, 5, 8]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.key = at::zeros({2, 4, 5, 7});
              }),
              HasSubstr("the same width: [2, 4, 5, 8] and [2, 4, 5, 7]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.value = at::zeros({2, 4, 6, 8});
              }),
              HasSubstr("the same length: [2, 4, 5, 8] and [2, 4, 6, 8]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.query = at::zeros({3, 4, 5, 8});
              }),
              HasSubstr("the same batch"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->mask.visible_keys = at::ones({2, 4}, at::kBool);
              }),
              HasSubstr("bool [batch, keys] = [2, 5], not Bool [2, 4]"));
  EXPECT_THAT(error_after([](HeadInputs* in) { in->mask.visible_keys = at::ones({2, 5}); }), HasSubstr("must be bool"));
}

// Where why_not_sdpa has no objection libtorch must really pick a fused kernel, training or not.
TEST(HeadAttention, LibtorchFusesWhatItIsGiven) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    for (const bool training : {false, true}) {
      HeadInputs in = make_inputs(one, at::kFloat);
      if (!can_run(kSdpaBackend, in)) continue;
      if (training) inputs_of(&in);
      SCOPED_TRACE(one.name);
      EXPECT_TRUE(kSdpaBackend.is_fused(in.problem, in.mask));
    }
  }
}

}  // namespace
}  // namespace headshare
