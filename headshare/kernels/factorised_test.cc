#include "headshare/kernels/factorised.h"

#include <gtest/gtest.h>

#include "headshare/kernels/attention_cases.h"

namespace headshare::kernels {
namespace {

using FactorisedTest = EveryInstructionSet;

// Forward and backward by the kernels of factorised.h; how many (head, block) pairs they left to the general ones.
template <typename Product = float>
Results run_factorised(const Problem& p, const Parallel& parallel, int64_t* by_head) {
  const AttentionSizes& a = p.c.s;
  const FactorisedSizes s{a.B, a.H, a.T, a.S, a.Dk, a.Dv};
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

std::vector<Case> factorised_cases() {
  const auto one_head = [](int64_t B, int64_t H, int64_t T, int64_t S, int64_t Dk, int64_t Dv) {
    return AttentionSizes{B, H, 1, 1, 1, T, S, Dk, Dv};
  };
  return {
      {"one_of_each", one_head(1, 1, 1, 1, 1, 1), 0.35F, false, true},
      {"open", one_head(2, 5, 65, 129, 8, 8), 0.35F, false, true},
      {"open_odd", one_head(1, 17, 15, 31, 5, 7), 0.35F, false, true},
      {"causal", one_head(1, 3, 130, 130, 8, 8), 0.35F, true, true},
      {"causal_more_keys", one_head(1, 3, 70, 201, 8, 8), 0.35F, true, true},
      {"causal_fewer_keys", one_head(1, 3, 150, 67, 8, 8), 0.35F, true, true},
      {"causal_alibi", one_head(1, 3, 200, 230, 8, 8), 0.35F, true, true, true},
      {"padded", one_head(3, 3, 70, 140, 8, 8), 0.35F, false, true, false, 9},
      {"padded_causal", one_head(2, 3, 140, 140, 8, 8), 0.35F, true, true, true, 70},
      {"all_hidden", one_head(2, 3, 20, 20, 8, 8), 0.35F, true, true, false, 20},
      {"hidden_blocks", one_head(2, 3, 70, 300, 8, 8), 0.35F, false, true, false, 3, 0, false, 256},
      {"large_means", one_head(1, 3, 70, 140, 8, 8), 0.35F, true, true, false, 0, 0, false, 0, 30},
      {"dropout", one_head(2, 3, 70, 140, 8, 8), 0.35F, true, true, false, 0, 0.3, true},
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

// A head whose biases are far below zero, behind a block of keys that nobody sees: measured from zero, that block's
// share would overflow.
TEST_P(FactorisedTest, SkipsHiddenBlocksBeforeFarBiases) {
  Case one{"far_below", {1, 2, 1, 1, 1, 64, 256, 8, 8}, 0.35F, false, true};
  one.hidden_head = 128;
  Problem p(one);
  for (int64_t j = 0; j < 256; ++j) p.bias[static_cast<size_t>(256 + j)] -= 100 / one.scale;
  int64_t by_head = 0;
  Results results = run_factorised(p, serial(), &by_head);
  EXPECT_EQ(by_head, 0);
  expect_results(p, results);
}

TEST_P(FactorisedTest, WithProductsInBf16IsAsNearAsTheirRounding) {
  for (const Case& one : factorised_cases()) {
    if (one.s.Dv % 2 != 0 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    const Problem p(one);
    int64_t by_head = 0;
    Results results = run_factorised<Bf16>(p, std_threads(2), &by_head);
    expect_results(p, results, /*times=*/1, Kept::kBf16);
  }
}

// Ranges of q.k and of the biases up to 200 nats, in opposite orders: P0 and w are both tiny at the key that
// counts, and their product loses it unless the head is done on its own.
Problem far_apart(bool causal, double dropout) {
  Case one{"far_apart", {1, 3, 1, 1, 1, 70, 140, 2, 4}, 1.0F, causal, true, false, 0, dropout, true};
  Problem p(one);
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
      // Exponents of 200 nats become powers of two: one more rounding of each, two without fused multiply-add.
      expect_results(problem, results, /*times=*/8);
    }
  }
}

// The example of docs/kernels.md#numerics: one key at (0, -80), 2047 at (-88, 0). Their addends are flushed to zero one
// by one although together they weigh 0.41; the denominator alone does not show it.
TEST_P(FactorisedTest, SeesAddendsThatWereFlushed) {
  Case one{"flushed", {1, 2, 1, 1, 1, 1, 2048, 1, 1}, 1.0F, false, true};
  Problem p(one);
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
  Case one{"huge", {1, 2, 1, 1, 1, 5, 300, 2, 3}, 1.0F, false, true};
  Problem p(one);
  p.key.view.at(0, 0)[77 * p.key.view.row] = 1e6F;
  for (int64_t i = 0; i < 5; ++i) p.query.view.at(0, 0)[i * p.query.view.row] = 1;
  int64_t by_head = 0;
  Results factorised = run_factorised(p, serial(), &by_head);
  Results blocked = run(p, serial());
  const ExpectedGradients gradients = expected_gradients(p);
  for (Results* found : {&factorised, &blocked}) {
    EXPECT_LE(gradients.value.gap(found->value.view), gradients.value.tolerance);
    EXPECT_LE(gradients.key.gap(found->key.view), gradients.key.tolerance);
    EXPECT_LE(gradients.key_bias.gap(found->bias_view(p.c.s)), gradients.key_bias.tolerance);
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
