// Tests what masks hide from the attention core, and queries that see nothing.
#include <gtest/gtest.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention_backends.h"
#include "headshare/ops/head_attention_cases.h"
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

TEST(HeadAttention, LiveQueriesAreThoseThatSeeAKey) {
  for (const HeadCase& one : head_cases()) {
    SCOPED_TRACE(one.name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    const Tensor live = live_queries(in.problem, in.mask);
    for (int64_t b = 0; b < one.B; ++b) {
      for (int64_t i = 0; i < one.T; ++i) {
        const int64_t keys = one.causal ? std::min(one.S, std::max<int64_t>(0, i + 1 + one.S - one.T)) : one.S;
        bool sees = keys > 0;
        if (sees && in.mask.visible_keys.defined()) sees = in.mask.visible_keys[b].slice(0, 0, keys).any().item<bool>();
        EXPECT_EQ(!live.defined() || live[live.size(0) == 1 ? 0 : b][i].item<bool>(), sees) << b << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headshare
