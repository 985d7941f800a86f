#include "headshare/kernels/attention.h"

#include <gtest/gtest.h>

#include "headshare/kernels/attention_cases.h"

namespace headshare::kernels {
namespace {

using AttentionTest = EveryInstructionSet;

// Returns the sum of the outputs' entries times p.gradient, by the reference.
double weighted_sum(const Problem& p) {
  const AttentionSizes& s = p.c.sizes;
  const std::vector<double> out = reference_forward<double>(s, p.rule(), p.inputs()).out;
  double sum = 0;
  for (int64_t i = 0; i < s.B * s.H * s.T * s.Dv; ++i) {
    const int64_t row = i / s.Dv;
    const float* slopes = p.gradient.view.at(row / (s.H * s.T), row / s.T % s.H) + row % s.T * p.gradient.view.row;
    sum += out[static_cast<size_t>(i)] * slopes[i % s.Dv];
  }
  return sum;
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  constexpr float kStep = 0x1p-8F;
  for (const Case& one : cases()) {
    if (one.sizes.T > 70 || one.scale > 1 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    Problem p(one);
    const auto gradients = reference_backward<double>(one.sizes, p.rule(), p.inputs(), p.gradient.read());
    const auto difference = [&](float* x) {
      const float before = *x;
      *x = before + kStep;
      const double above = weighted_sum(p);
      *x = before - kStep;
      const double below = weighted_sum(p);
      *x = before;
      return (above - below) / (2 * kStep);
    };
    const auto check = [&](Poisoned& input, int64_t heads, int64_t rows, int64_t width,
                           const std::vector<double>& gradient) {
      const auto count = static_cast<int64_t>(gradient.size());
      for (int64_t i = 0; i < count; i += count / 5 + 1) {
        const int64_t row = i / width;
        float* x = input.view.at(row / (heads * rows), row / rows % heads) + row % rows * input.view.row + i % width;
        EXPECT_NEAR(difference(x), gradient[static_cast<size_t>(i)], 1e-3) << i;
      }
    };
    check(p.query, one.sizes.Hq, one.sizes.T, one.sizes.Dk, gradients.query);
    check(p.key, one.sizes.Hk, one.sizes.S, one.sizes.Dk, gradients.key);
    check(p.value, one.sizes.Hv, one.sizes.S, one.sizes.Dv, gradients.value);
    for (size_t i = 0; i < p.bias.size(); i += p.bias.size() / 5 + 1) {
      EXPECT_NEAR(difference(&p.bias[i]), gradients.key_bias[i], 1e-3) << i;
    }
  }
}

TEST_P(AttentionTest, EqualsTheReferenceForwardAndBackward) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    Results results = run(problem, serial());
    expect_results(problem, results);
  }
}

// The number of threads decides whether heads are split, shared gradients added up or queries divided.
TEST_P(AttentionTest, EqualsTheReferenceWithThreads) {
  for (const Case& one : cases()) {
    for (const int64_t threads : {2, 7}) {
      SCOPED_TRACE(one.name);
      const Problem problem(one);
      Results results = run(problem, std_threads(threads));
      expect_results(problem, results);
    }
  }
}

// The bits are the same whichever thread takes which part.
TEST(Attention, RepeatsToTheLastBitForANumberOfThreads) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    expect_same(run(problem, std_threads(3)), run(problem, eager_threads(3)));
  }
}

// The inputs are rounded to bf16, and the reference is that of the rounded ones: what remains is the rounding of
// weights and results.
TEST_P(AttentionTest, Bf16EqualsTheReferenceOfItsInputs) {
  for (const Case& one : cases()) {
    if (!suits_bf16(one)) continue;
    SCOPED_TRACE(one.name);
    Problem problem(one);
    const AttentionSizes& s = one.sizes;
    const auto query = narrowed(&problem.query), key = narrowed(&problem.key), value = narrowed(&problem.value);
    const auto gradient = narrowed(&problem.gradient);
    const AttentionInputs<Bf16> in{seen(query, problem.query), seen(key, problem.key), seen(value, problem.value)};
    Results like(s);
    auto out = room(like.out), dq = room(like.query), dk = room(like.key), dv = room(like.value);
    const Machine machine = machine_with(std_threads(2));
    attention_forward<Bf16>(s, problem.rule(), in, written(out, like.out), like.lse.data(), machine);
    attention_backward<Bf16>(
        s, problem.rule(), in, seen(out, like.out), like.lse.data(), seen(gradient, problem.gradient),
        {written(dq, like.query), written(dk, like.key), written(dv, like.value), like.bias.data()}, machine);
    widen(out, &like.out);
    widen(dq, &like.query);
    widen(dk, &like.key);
    widen(dv, &like.value);
    expect_results(problem, like, /*times=*/1, Kept::kBf16);
  }
}

TEST_P(AttentionTest, NanInTheInputShows) {
  const Problem p = problem_with_nan();
  expect_nan_at_its_query(run(p, serial()));
}

INSTANTIATE_TEST_SUITE_P(AllOfThem, AttentionTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
