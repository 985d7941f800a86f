#include "headshare/kernels/factorised.h"

#include <gtest/gtest.h>

#include "headshare/kernels/attention_cases.h"

namespace headshare::kernels {
namespace {

using FactorisedTest = EveryInstructionSet;

// Runs forward and backward by the kernels of factorised.h; `by_head` becomes how many (head, block) pairs they left to
// the general ones.
template <typename Product = float>
Results run_factorised(const Problem& p, const Parallel& parallel, int64_t* by_head) {
  const AttentionSizes& a = p.c.sizes;
  const FactorisedSizes s{.B = a.B, .H = a.H, .T = a.T, .S = a.S, .Dk = a.Dk, .Dv = a.Dv};
  const Machine machine = machine_with(parallel);
  Results results(a);
  std::vector<float> m(static_cast<size_t>(s.B * s.T));
  const auto flags = std::make_unique<bool[]>(static_cast<size_t>(s.B * s.H * s.blocks()));
  const FactorisedState state{results.lse.data(), m.data(), flags.get()};
  factorised_forward<Product>(s, p.rule(), p.inputs(), results.out.view, state, machine);
  factorised_backward<Product>(s, p.rule(), p.inputs(), results.out.read(), state, p.gradient.read(),
                               results.gradients(), machine);
  *by_head = 0;
  for (int64_t i = 0; i < s.B * s.H * s.blocks(); ++i) *by_head += flags[i] ? 1 : 0;
  return results;
}

// All heads read the same queries, keys and values: they differ in their biases.
std::vector<Case> factorised_cases() {
  return {
      {.name = "one_of_each", .sizes = {}, .key_bias = true},
      {.name = "open", .sizes = {.B = 2, .H = 5, .T = 65, .S = 129, .Dk = 8, .Dv = 8}, .key_bias = true},
      {.name = "open_odd", .sizes = {.H = 17, .T = 15, .S = 31, .Dk = 5, .Dv = 7}, .key_bias = true},
      {.name = "causal", .sizes = {.H = 3, .T = 130, .S = 130, .Dk = 8, .Dv = 8}, .causal = true, .key_bias = true},
      {.name = "causal_more_keys",
       .sizes = {.H = 3, .T = 70, .S = 201, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true},
      {.name = "causal_fewer_keys",
       .sizes = {.H = 3, .T = 150, .S = 67, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true},
      {.name = "causal_alibi",
       .sizes = {.H = 3, .T = 200, .S = 230, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .alibi = true},
      {.name = "padded",
       .sizes = {.B = 3, .H = 3, .T = 70, .S = 140, .Dk = 8, .Dv = 8},
       .key_bias = true,
       .hidden_tail = 9},
      {.name = "padded_causal",
       .sizes = {.B = 2, .H = 3, .T = 140, .S = 140, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .alibi = true,
       .hidden_tail = 70},
      {.name = "all_hidden",
       .sizes = {.B = 2, .H = 3, .T = 20, .S = 20, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .hidden_tail = 20},
      {.name = "hidden_blocks",
       .sizes = {.B = 2, .H = 3, .T = 70, .S = 300, .Dk = 8, .Dv = 8},
       .key_bias = true,
       .hidden_head = 256,
       .hidden_tail = 3},
      {.name = "large_means",
       .sizes = {.H = 3, .T = 70, .S = 140, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .mean = 30},
      {.name = "dropout",
       .sizes = {.B = 2, .H = 3, .T = 70, .S = 140, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .dropout = 0.3,
       .shared_mask = true},
  };
}

TEST_P(FactorisedTest, EqualsTheReference) {
  for (const Case& one : factorised_cases()) {
    for (const int64_t threads : {1, 3}) {
      SCOPED_TRACE(one.name);
      const Problem problem(one);
      int64_t by_head = 0;
      Results results = run_factorised(problem, std_threads(threads), &by_head);
      expect_results(problem, results);
      EXPECT_EQ(by_head, 0);
    }
  }
}

TEST(Factorised, RepeatsToTheLastBitForANumberOfThreads) {
  for (const Case& one : factorised_cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    int64_t by_head = 0;
    const Results once = run_factorised(problem, std_threads(3), &by_head);
    expect_same(once, run_factorised(problem, eager_threads(3), &by_head));
  }
}

// One head has biases far below zero, behind a block of keys that nobody sees: measured from zero, that block's share
// would overflow.
TEST_P(FactorisedTest, SkipsHiddenBlocksBeforeFarBiases) {
  Problem p({.name = "far_below",
             .sizes = {.H = 2, .T = 64, .S = 256, .Dk = 8, .Dv = 8},
             .key_bias = true,
             .hidden_head = 128});
  for (int64_t j = 0; j < 256; ++j) p.bias[static_cast<size_t>(256 + j)] -= 100 / p.c.scale;
  int64_t by_head = 0;
  Results results = run_factorised(p, serial(), &by_head);
  EXPECT_EQ(by_head, 0);
  expect_results(p, results);
}

TEST_P(FactorisedTest, WithProductsInBf16IsAsNearAsTheirRounding) {
  for (const Case& one : factorised_cases()) {
    if (one.sizes.Dv % 2 != 0 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    const Problem p(one);
    int64_t by_head = 0;
    Results results = run_factorised<Bf16>(p, std_threads(2), &by_head);
    expect_results(p, results, /*times=*/1, Kept::kBf16);
  }
}

// The ranges of q.k and of the biases are up to 200 nats, in opposite orders: P0 and w are both tiny at the key that
// counts, and their product loses it unless the head is done on its own.
Problem far_apart(bool causal, double dropout) {
  Problem p({.name = "far_apart",
             .sizes = {.H = 3, .T = 70, .S = 140, .Dk = 2, .Dv = 4},
             .scale = 1,
             .causal = causal,
             .key_bias = true,
             .dropout = dropout,
             .shared_mask = true});
  for (int64_t i = 0; i < 70; ++i) {
    p.query.view.at(0, 0)[i * p.query.view.row] = 1;
    p.query.view.at(0, 0)[i * p.query.view.row + 1] = 0;
  }
  for (int64_t j = 0; j < 140; ++j) {
    const auto t = static_cast<float>(j) / 139;
    p.key.view.at(0, 0)[j * p.key.view.row] = -200 * t;  // q.k falls from 0 to -200
    for (int64_t h = 0; h < 3; ++h) p.bias[static_cast<size_t>(h * 140 + j)] = 199.0F * t * static_cast<float>(h) / 2;
  }
  return p;
}

TEST_P(FactorisedTest, SurvivesRangesThatLieFarApart) {
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.4}) {
      const Problem problem = far_apart(causal, dropout);
      int64_t by_head = 0;
      Results results = run_factorised(problem, std_threads(2), &by_head);
      EXPECT_GT(by_head, 0);  // some heads fall back,
      EXPECT_LT(by_head, 6);  // not those whose biases are small
      // Exponents of 200 nats become powers of two: that is one more rounding of each, two without fused multiply-add.
      expect_results(problem, results, /*times=*/8);
    }
  }
}

// This is the example of docs/kernels.md#numerics: one key at (0, -80), 2047 at (-88, 0). Their addends are flushed to
// zero one by one although together they weigh 0.41; the denominator alone does not show it.
TEST_P(FactorisedTest, SeesAddendsThatWereFlushed) {
  Problem p({.name = "flushed", .sizes = {.H = 2, .S = 2048}, .scale = 1, .key_bias = true});
  p.query.view.at(0, 0)[0] = 1;
  for (int64_t j = 0; j < 2048; ++j) {
    p.key.view.at(0, 0)[j * p.key.view.row] = j == 7 ? 0 : -88;
    p.value.view.at(0, 0)[j * p.value.view.row] = j == 7 ? 1 : 0;
    p.bias[static_cast<size_t>(j)] = 0;
    p.bias[static_cast<size_t>(2048 + j)] = j == 7 ? -80 : 0;
  }
  int64_t by_head = 0;
  Results results = run_factorised(p, serial(), &by_head);
  EXPECT_EQ(by_head, 1);
  expect_results(p, results, /*times=*/8);
  const double others = 2047 * std::exp(-8.0);
  EXPECT_NEAR(results.out.view.at(0, 1)[0], 1 / (1 + others), 1e-5);
  EXPECT_NEAR(results.out.view.at(0, 0)[0], 1, 1e-6);
}

// One entry far above all others takes the whole softmax.
TEST_P(FactorisedTest, OneHugeScoreTakesAll) {
  Problem p({.name = "huge", .sizes = {.H = 2, .T = 5, .S = 300, .Dk = 2, .Dv = 3}, .scale = 1, .key_bias = true});
  p.key.view.at(0, 0)[77 * p.key.view.row] = 1e6F;
  for (int64_t i = 0; i < 5; ++i) p.query.view.at(0, 0)[i * p.query.view.row] = 1;
  int64_t by_head = 0;
  Results factorised = run_factorised(p, serial(), &by_head);
  Results blocked = run(p, serial());
  const ExpectedGradients gradients = expected_gradients(p);
  for (Results* found : {&factorised, &blocked}) {
    EXPECT_LE(gradients.value.gap(found->value.view), gradients.value.tolerance);
    EXPECT_LE(gradients.key.gap(found->key.view), gradients.key.tolerance);
    EXPECT_LE(gradients.key_bias.gap(found->bias_view(p.c.sizes)), gradients.key_bias.tolerance);
    EXPECT_LE(gradients.query.gap(found->query.view), 1.0);  // rounding of some 1e-7 times the huge key
    EXPECT_TRUE(found->fences_stand());
  }
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t d = 0; d < 3; ++d) {
      const float expected = p.value.view.at(0, 0)[77 * p.value.view.row + d];
      EXPECT_FLOAT_EQ(factorised.out.view.at(0, i % 2)[i / 2 * factorised.out.view.row + d], expected);
      EXPECT_EQ(blocked.out.view.at(0, i % 2)[i / 2 * blocked.out.view.row + d], expected);
    }
  }
}

TEST_P(FactorisedTest, NanInTheInputShows) {
  int64_t by_head = 0;
  expect_nan_at_its_query(run_factorised(problem_with_nan(), serial(), &by_head));
}

INSTANTIATE_TEST_SUITE_P(AllOfThem, FactorisedTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
