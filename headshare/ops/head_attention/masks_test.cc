// Tests what masks hide from the attention core, and queries that see nothing.
#include <gmock/gmock.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// Returns a case that the backend takes, with gradients or one query where it needs that.
HeadCase suited(const HeadBackend& backend, HeadCase one) {
  if (backend.name == kFactorisedBackend.name) one.Hq = one.Hk = one.Hv = 1;
  if (backend.name == kDecodeBackend.name) one.T = 1;
  return one;
}

TEST(HeadAttention, DeadQueriesGiveZerosAndNoGradient) {
  const HeadCase dead = {.T = 150, .S = 150, .causal = true, .padding = Padding::kSentence};
  for (const HeadBackend& backend : head_backends()) {
    const HeadCase one = suited(backend, dead);
    SCOPED_TRACE(backend.name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    ASSERT_TRUE(can_run(backend, in));
    EXPECT_EQ(attend_with(backend, in)[0].abs().max().item<float>(), 0.0F);
    if (one.T == 1) continue;  // no gradients
    for (const Tensor& gradient : gradients_of(backend, in)) {
      EXPECT_EQ(gradient[0].abs().max().item<float>(), 0.0F);
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      EXPECT_GT(gradient[1].abs().max().item<float>(), 0.0F);
    }
  }
}

TEST(HeadAttention, NothingHiddenLeaks) {
  for (const HeadCase& one : head_cases()) {
    if (one.padding == Padding::kNone || one.S == 0 || one.B == 0) continue;
    const HeadInputs clean = make_inputs(one, at::kFloat);
    HeadInputs poisoned = make_inputs(one, at::kFloat);
    const Tensor hidden = clean.mask.visible_keys.logical_not().view({one.B, 1, one.S, 1});
    poisoned.problem.key.masked_fill_(hidden, 1e30);
    poisoned.problem.value.masked_fill_(hidden, -1e30);
    if (one.key_bias) poisoned.problem.key_bias.masked_fill_(hidden.squeeze(3), 1e30);
    for (const HeadBackend& backend : head_backends()) {
      if (!can_run(backend, clean)) continue;
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      EXPECT_TRUE(at::equal(attend_with(backend, clean), attend_with(backend, poisoned)));
    }
  }
}

TEST(HeadAttention, NoFutureTokenLeaks) {
  const HeadCase causal = {.T = 140, .S = 140, .causal = true};
  for (const HeadBackend& backend : head_backends()) {
    SCOPED_TRACE(backend.name);
    HeadInputs in = make_inputs(suited(backend, causal), at::kFloat);
    if (in.problem.query.size(2) == 1) continue;  // the last query has no future
    ASSERT_TRUE(can_run(backend, in));
    const Tensor clean = attend_with(backend, in).slice(2, 0, 100);
    in.problem.key.slice(2, 100).fill_(1e30);
    in.problem.value.slice(2, 100).fill_(-1e30);
    EXPECT_TRUE(at::equal(clean, attend_with(backend, in).slice(2, 0, 100)));
  }
}

TEST(HeadAttention, NothingLeaksFromOutsideOfTheWindow) {
  for (const bool causal : {false, true}) {
    for (const HeadBackend* backend : {&kSdpaBackend, &kBlockedBackend, &kReferenceBackend}) {
      SCOPED_TRACE(join_text(backend->name, causal ? ", causal" : ""));
      const int64_t T = backend == &kSdpaBackend ? 120 : 300, first = T / 2, last = first + 20;
      HeadInputs in = make_inputs({.T = T, .S = T, .causal = causal, .window = 20}, at::kFloat);
      const Tensor clean = attend_with(*backend, in).slice(2, first, last);
      for (const Tensor& x : {in.problem.key, in.problem.value}) {
        x.slice(2, 0, first - 20).fill_(1e30);
        x.slice(2, causal ? last : last + 20).fill_(-1e30);
      }
      EXPECT_TRUE(at::equal(clean, attend_with(*backend, in).slice(2, first, last)));
    }
  }
}

TEST(HeadAttention, KernelsRefuseWindowsThatHideKeys) {
  const auto chosen = [](const HeadCase& one) {
    const HeadInputs in = make_inputs(one, at::kFloat);
    return choose_head_backend(in.problem, in.mask, {}).name;
  };
  const HeadInputs in = make_inputs({.Hq = 1, .Hk = 1, .Hv = 1, .T = 2, .S = 9, .window = 3}, at::kFloat);
  for (const HeadBackend* backend : {&kDecodeBackend, &kFactorisedBackend, &kFusedBackend}) {
    EXPECT_THAT(backend->why_not(in.problem, in.mask, {}), testing::Contains("the kernel has no local windows"));
  }
  EXPECT_EQ(chosen({.window = 3}), "sdpa");
  EXPECT_EQ(chosen({.T = 129, .S = 129, .window = 3}), "blocked");
  EXPECT_EQ(chosen({.window = 4}), "fused");  // which hides no key of five
  EXPECT_EQ(chosen({.T = 1, .S = 9, .causal = true, .window = 3}), "decode");
  HeadInputs below = make_inputs({}, at::kFloat);
  below.mask.window = -1;
  EXPECT_THAT(error_message([&] { attend(below.problem, below.mask, {}); }), testing::HasSubstr("not -1"));
}

TEST(HeadAttention, LiveQueriesAreThoseThatSeeAKey) {
  for (const HeadCase& one : head_cases()) {
    SCOPED_TRACE(one.name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    const Tensor live = live_queries(in.problem, in.mask);
    for (int64_t b = 0; b < one.B; ++b) {
      for (int64_t i = 0; i < one.T; ++i) {
        const int64_t place = i + one.S - one.T;
        const int64_t behind = one.window > 0 ? place - one.window : 0;
        const int64_t ahead = one.causal ? place : one.window > 0 ? place + one.window : one.S - 1;
        const int64_t begin = std::clamp<int64_t>(behind, 0, one.S), end = std::clamp<int64_t>(ahead + 1, 0, one.S);
        bool sees = begin < end;
        if (sees && in.mask.visible_keys.defined()) {
          sees = in.mask.visible_keys[b].slice(0, begin, end).any().item<bool>();
        }
        EXPECT_EQ(!live.defined() || live[live.size(0) == 1 ? 0 : b][i].item<bool>(), sees) << b << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headshare
