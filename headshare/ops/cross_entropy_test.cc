#include "headshare/ops/cross_entropy.h"

#include <gmock/gmock.h>
#include <torch/autograd.h>

#include <array>
#include <tuple>

#include "headshare/base/testing.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kIgnored = -100;

struct Inputs {
  Tensor hidden;     // [N, E]
  Tensor embedding;  // [V, E]
  Tensor targets;    // [N]
  Tensor bias;       // [V]
};

// Every third target is ignored.
Inputs random_inputs(int64_t N, int64_t E, int64_t V, double deviation = 1) {
  Tensor targets = at::arange(N).mul(7).remainder(V);
  for (int64_t i = 2; i < N; i += 3) targets[i] = kIgnored;
  return {random_tensor({N, E}, 1, at::kDouble, deviation).requires_grad_(),
          random_tensor({V, E}, 2, at::kDouble, deviation).requires_grad_(), targets,
          random_tensor({V}, 3, at::kDouble, deviation).requires_grad_()};
}

Inputs cast(const Inputs& in, at::ScalarType type) {
  const auto leaf = [&](const Tensor& x) { return x.detach().to(type).requires_grad_(); };
  return {leaf(in.hidden), leaf(in.embedding), in.targets, leaf(in.bias)};
}

struct Outcome {
  Tensor loss, hidden, embedding, bias;
};

Outcome outcome(const Tensor& loss, const Inputs& in) {
  const auto gradients = torch::autograd::grad({loss * 0.5}, {in.hidden, in.embedding, in.bias});
  return {loss.detach(), gradients[0], gradients[1], gradients[2]};
}

Outcome chunked(const Inputs& in) {
  return outcome(cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, in.bias), in);
}

// Computes with the whole matrix of scores at once.
Outcome plain(const Inputs& in) {
  const Tensor scores = in.hidden.matmul(in.embedding.t()) + in.bias;
  return outcome(at::cross_entropy_loss(scores, in.targets, {}, at::Reduction::Sum, kIgnored), in);
}

// The last size needs several chunks, and the last of them is short.
const std::vector<std::array<int64_t, 3>> kSizes = {{1, 1, 1}, {1, 4, 7}, {5, 3, 2}, {33, 8, 65}, {7, 1, 1 << 23}};

TEST(CrossEntropy, IsTheFormulaWithItsGradients) {
  for (const auto& [N, E, V] : kSizes) {
    const Inputs in = random_inputs(N, E, V);
    const Outcome found = chunked(in);
    const Outcome expected = plain(in);
    EXPECT_TRUE(same(found.loss, expected.loss)) << N << " " << E << " " << V;
    EXPECT_TRUE(same(found.hidden, expected.hidden)) << N << " " << E << " " << V;
    EXPECT_TRUE(same(found.embedding, expected.embedding)) << N << " " << E << " " << V;
    EXPECT_TRUE(same(found.bias, expected.bias)) << N << " " << E << " " << V;
    const Tensor rows = cross_entropy_rows(in.hidden, in.embedding, in.targets, kIgnored, in.bias);
    EXPECT_TRUE(same(rows.sum(), expected.loss));
    EXPECT_FALSE(rows.requires_grad());
  }
}

TEST(CrossEntropy, GradientsAreThoseOfFiniteDifferences) {
  const Inputs in = random_inputs(5, 3, 6);
  const Outcome found = chunked(in);
  const at::NoGradGuard no_grad;
  const auto loss = [&] {
    return 0.5 * cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, in.bias).item<double>();
  };
  constexpr double kStep = 1e-5;
  for (const auto& [tensor, gradient] :
       {std::pair(in.hidden, found.hidden), std::pair(in.embedding, found.embedding), std::pair(in.bias, found.bias)}) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      double* value = tensor.mutable_data_ptr<double>() + i;
      const double before = *value;
      *value = before + kStep;
      const double above = loss();
      *value = before - kStep;
      const double below = loss();
      *value = before;
      // The tolerance is third derivatives times step^2, and rounding divided by the step.
      EXPECT_NEAR(gradient.flatten()[i].item<double>(), (above - below) / (2 * kStep), 1e-9);
    }
  }
}

TEST(CrossEntropy, RowsAreMinusTheLogarithmAndZeroWhereIgnored) {
  const Inputs in = random_inputs(7, 4, 9);
  const Tensor rows = cross_entropy_rows(in.hidden, in.embedding, in.targets, kIgnored);
  const Tensor logs = at::log_softmax(in.hidden.matmul(in.embedding.t()), 1);
  for (int64_t i = 0; i < 7; ++i) {
    const int64_t target = in.targets[i].item<int64_t>();
    EXPECT_NEAR(rows[i].item<double>(), target == kIgnored ? 0 : -logs[i][target].item<double>(), 1e-12);
  }
}

TEST(CrossEntropy, WithoutABiasIsWithZeros) {
  const Inputs in = random_inputs(33, 8, 65);
  const Tensor zeros = at::zeros_like(in.bias);
  const Tensor bare = cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored);
  const Tensor added = cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, zeros);
  EXPECT_TRUE(at::equal(bare, added));
  const auto inputs = {in.hidden, in.embedding};
  const auto found = torch::autograd::grad({bare}, inputs);
  const auto expected = torch::autograd::grad({added}, inputs);
  EXPECT_TRUE(same(found[0], expected[0]));
  EXPECT_TRUE(same(found[1], expected[1]));
}

// The loss may err as much as the plain computation in the same type, twice, and some roundings.
TEST(CrossEntropy, IsAsExactAsThePlainComputationInLowerPrecision) {
  for (const auto& [type, epsilon] : {std::pair(at::kFloat, 0x1p-23), std::pair(at::kBFloat16, 0x1p-8)}) {
    for (const double deviation : {0.3, 3.0}) {
      const Inputs in = random_inputs(64, 32, 300, deviation);
      const Outcome exact = plain(in);
      const Outcome found = chunked(cast(in, type));
      const Outcome direct = plain(cast(in, type));
      const auto bound = [&, epsilon = epsilon](const Tensor& plain, const Tensor& truth) {
        return 2 * distance(plain, truth) + 4 * epsilon * magnitude(truth);
      };
      EXPECT_TRUE(close(found.loss, exact.loss, bound(direct.loss, exact.loss)));
      EXPECT_TRUE(close(found.hidden, exact.hidden, bound(direct.hidden, exact.hidden)));
      EXPECT_TRUE(close(found.embedding, exact.embedding, bound(direct.embedding, exact.embedding)));
      EXPECT_TRUE(close(found.bias, exact.bias, bound(direct.bias, exact.bias)));
      EXPECT_EQ(found.hidden.scalar_type(), type);
      EXPECT_EQ(found.embedding.scalar_type(), type);
    }
  }
}

TEST(CrossEntropy, TakesScoresThatOverflowTheExponential) {
  Inputs in{at::full({2, 1}, 1.0), at::tensor({-5000.0, 0.0, 5000.0}).unsqueeze(1), at::tensor({0, 2}, at::kLong),
            at::zeros({3})};
  in = cast(in, at::kFloat);
  const Outcome found = chunked(in);
  EXPECT_EQ(found.loss.item<double>(), 10000);
  EXPECT_TRUE(close(found.hidden, at::tensor({0.5 * 10000, 0.0}).unsqueeze(1), 0));
}

TEST(CrossEntropy, WithoutTargetsIsZero) {
  for (const int64_t N : {0, 3}) {
    Inputs in = random_inputs(N, 4, 5);
    in.targets.fill_(kIgnored);
    const Outcome found = chunked(in);
    EXPECT_EQ(found.loss.item<double>(), 0);
    EXPECT_EQ(found.hidden.abs().sum().item<double>(), 0);
    EXPECT_EQ(found.bias.abs().sum().item<double>(), 0);
    EXPECT_EQ(found.embedding.abs().sum().item<double>(), 0);
    EXPECT_EQ(cross_entropy_rows(in.hidden, in.embedding, in.targets, kIgnored).sizes(), in.targets.sizes());
  }
}

TEST(CrossEntropy, ComputesOnlyGradientsThatAreWanted) {
  const Inputs in = random_inputs(6, 4, 5);
  const Outcome both = chunked(in);
  const Tensor frozen = in.embedding.detach();
  const Tensor loss = cross_entropy_sum(in.hidden, frozen, in.targets, kIgnored, in.bias.detach());
  EXPECT_TRUE(at::equal(torch::autograd::grad({loss}, {in.hidden})[0] * 0.5, both.hidden));
  const Tensor biased = cross_entropy_sum(in.hidden.detach(), frozen, in.targets, kIgnored, in.bias);
  EXPECT_TRUE(at::equal(torch::autograd::grad({biased}, {in.bias})[0] * 0.5, both.bias));
  EXPECT_FALSE(cross_entropy_sum(in.hidden.detach(), frozen, in.targets, kIgnored).requires_grad());
}

TEST(CrossEntropy, GivesTheSameBitsAgain) {
  const Inputs in = cast(random_inputs(9, 2, 1 << 22), at::kFloat);
  const Outcome first = chunked(in);
  const Outcome second = chunked(in);
  EXPECT_TRUE(at::equal(first.loss, second.loss));
  EXPECT_TRUE(at::equal(first.embedding, second.embedding));
}

TEST(CrossEntropy, IsThatOfFloat32WhereProductsWiden) {
  const Inputs in = cast(random_inputs(64, 32, 300, 0.3), at::kFloat);
  const Outcome exact = chunked(in);
  const WidenedProducts forced(true);
  const ComputeIn bf16(Precision::kBf16, at::kCPU);
  const Outcome found = chunked(in);
  EXPECT_TRUE(at::equal(found.loss, exact.loss));
  EXPECT_TRUE(at::equal(found.embedding, exact.embedding));
}

TEST(CrossEntropy, OfHalvesIsThatOfFloat32ButForRounding) {
  const Inputs in = cast(random_inputs(128, 128, 300, 0.3), at::kFloat);
  const Outcome exact = chunked(in);
  const ComputeIn in_halves(Precision::kBf16x3, at::kCPU);
  const Outcome found = chunked(in);
  const double rounding = 0x1p-13;
  EXPECT_TRUE(close(found.loss, exact.loss, rounding * magnitude(exact.loss)));
  EXPECT_TRUE(close(found.hidden, exact.hidden, rounding * magnitude(exact.hidden)));
  EXPECT_TRUE(close(found.embedding, exact.embedding, rounding * magnitude(exact.embedding)));
  if (tile_gemm_name(/*bf16=*/true) == "brgemm") {
    EXPECT_GT(distance(found.embedding, exact.embedding), 0);
  }
}

TEST(CrossEntropy, UnderAutocastKeepsParametersAndSumsInFloat32) {
  const WidenedProducts forced(false);
  const Inputs in = cast(random_inputs(64, 32, 300, 0.3), at::kFloat);
  const Outcome exact = chunked(in);
  const Outcome found = [&] {
    const ComputeIn bf16(Precision::kBf16, at::kCPU);
    return chunked(in);
  }();
  EXPECT_EQ(found.loss.scalar_type(), at::kFloat);
  EXPECT_EQ(found.hidden.scalar_type(), at::kFloat);
  EXPECT_EQ(found.embedding.scalar_type(), at::kFloat);
  EXPECT_EQ(found.bias.scalar_type(), at::kFloat);
  Inputs halves = cast(in, at::kBFloat16);
  halves.bias = in.bias;  // biases stay float32 under autocast
  const Outcome rounded = chunked(halves);
  EXPECT_TRUE(close(found.loss, rounded.loss, 0));
  EXPECT_GT(distance(found.loss, exact.loss), 0);
  // The tolerance is half a bfloat16 epsilon for each factor of a product and for the slopes.
  EXPECT_TRUE(close(found.embedding, exact.embedding, 4 * 0x1p-8 * magnitude(exact.embedding)));
}

TEST(CrossEntropy, RefusesWhatIsNoTargetAndASecondBackwardPass) {
  const Inputs in = random_inputs(4, 3, 5);
  Tensor targets = in.targets.clone();
  targets[1] = 5;
  EXPECT_THAT(error_message([&] { cross_entropy_sum(in.hidden, in.embedding, targets, kIgnored); }),
              HasSubstr("target 5 is no token of a vocabulary of 5"));
  EXPECT_THAT(error_message([&] { cross_entropy_rows(in.hidden, in.embedding, targets.narrow(0, 0, 3), kIgnored); }),
              HasSubstr("for each of 4 rows, not [3]"));
  EXPECT_THAT(error_message([&] { cross_entropy_rows(in.hidden, in.hidden.t(), in.targets, kIgnored); }),
              HasSubstr("not [4, 3] and [3, 4]"));
  EXPECT_THAT(error_message([&] { cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, at::ones({4})); }),
              HasSubstr("a bias for each of 5 tokens is wanted, not [4]"));
  const Tensor loss = cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored);
  torch::autograd::grad({loss}, {in.hidden}, {}, /*retain_graph=*/true);
  EXPECT_THAT(error_message([&] { torch::autograd::grad({loss}, {in.hidden}); }), HasSubstr("computed once"));
}

TEST(CrossEntropy, ChunksAreOfEqualSize) {
  EXPECT_EQ(cross_entropy_chunk(7, 1 << 23), 4);
  EXPECT_EQ(cross_entropy_chunk(2048, 50257), 512);
  EXPECT_EQ(cross_entropy_chunk(2048, 256), 2048);
  EXPECT_EQ(cross_entropy_chunk(0, 256), 1);
  EXPECT_EQ(cross_entropy_chunk(3, int64_t{1} << 40), 1);
}

// This teacher has another width than the student.
TeacherRows random_teacher(int64_t N, int64_t V, at::ScalarType type = at::kDouble, double deviation = 1) {
  return {random_tensor({N, 5}, 11, type, deviation), random_tensor({V, 5}, 12, type, deviation),
          random_tensor({V}, 13, type)};
}

struct Taught {
  Outcome outcome;
  Tensor plain;
};

Taught taught(const Inputs& in, const TeacherRows& teacher, const Distillation& how) {
  const DistilledLoss found =
      distilled_cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, in.bias, teacher, how);
  EXPECT_FALSE(found.plain.requires_grad());
  return {outcome(found.sum, in), found.plain};
}

// Computes the formula by torch's own functions.
Outcome plainly_taught(const Inputs& in, const TeacherRows& teacher, const Distillation& how) {
  const Tensor rows = (in.targets != kIgnored).nonzero().squeeze(1);
  const Tensor scores = (in.hidden.matmul(in.embedding.t()) + in.bias).index_select(0, rows);
  const Tensor theirs = (teacher.hidden.matmul(teacher.embedding.t()) + teacher.bias).index_select(0, rows);
  const Tensor entropy =
      at::cross_entropy_loss(scores, in.targets.index_select(0, rows), {}, at::Reduction::Sum, kIgnored);
  const double T = how.temperature;
  const Tensor divergence = at::kl_div(at::log_softmax(scores / T, 1), at::log_softmax(theirs / T, 1),
                                       at::Reduction::Sum, /*log_target=*/true);
  return outcome(entropy * (1 - how.share) + divergence * (how.share * T * T), in);
}

const std::vector<Distillation> kWaysToTeach = {{0.5, 1}, {1, 1}, {0.3, 2}, {1, 0.5}};

TEST(DistilledCrossEntropy, IsTheFormulaWithItsGradients) {
  for (const auto& [N, E, V] : kSizes) {
    const Inputs in = random_inputs(N, E, V);
    const TeacherRows teacher = random_teacher(N, V);
    const std::vector<Distillation> ways =
        V > 100 ? std::vector{kWaysToTeach[2]} : kWaysToTeach;  // the largest takes seconds
    for (const Distillation& how : ways) {
      const Taught found = taught(in, teacher, how);
      const Outcome expected = plainly_taught(in, teacher, how);
      EXPECT_TRUE(same(found.outcome.loss, expected.loss)) << N << " " << V << " " << how.share;
      EXPECT_TRUE(same(found.outcome.hidden, expected.hidden)) << N << " " << V << " " << how.share;
      EXPECT_TRUE(same(found.outcome.embedding, expected.embedding)) << N << " " << V << " " << how.share;
      EXPECT_TRUE(same(found.outcome.bias, expected.bias)) << N << " " << V << " " << how.share;
      EXPECT_TRUE(same(found.plain, plain(in).loss));
    }
  }
}

// The bound is that of IsAsExactAsThePlainComputationInLowerPrecision for CrossEntropy.
TEST(DistilledCrossEntropy, IsAsExactAsThePlainComputationInLowerPrecision) {
  for (const auto& [type, epsilon] : {std::pair(at::kFloat, 0x1p-23), std::pair(at::kBFloat16, 0x1p-8)}) {
    for (const Distillation& how : kWaysToTeach) {
      const Inputs in = random_inputs(64, 32, 300, 0.3);
      const Outcome exact = plainly_taught(in, random_teacher(64, 300), how);
      const Inputs low = cast(in, type);
      const Outcome found = taught(low, random_teacher(64, 300, type), how).outcome;
      const Outcome direct = plainly_taught(low, random_teacher(64, 300, type), how);
      const auto bound = [&, epsilon = epsilon](const Tensor& plain, const Tensor& truth) {
        return 2 * distance(plain, truth) + 4 * epsilon * magnitude(truth);
      };
      EXPECT_TRUE(close(found.loss, exact.loss, bound(direct.loss, exact.loss)));
      EXPECT_TRUE(close(found.hidden, exact.hidden, bound(direct.hidden, exact.hidden)));
      EXPECT_TRUE(close(found.embedding, exact.embedding, bound(direct.embedding, exact.embedding)));
      EXPECT_TRUE(close(found.bias, exact.bias, bound(direct.bias, exact.bias)));
      EXPECT_EQ(found.embedding.scalar_type(), type);
    }
  }
}

TEST(DistilledCrossEntropy, WithoutAShareIsTheOtherToTheLastBit) {
  const Inputs in = cast(random_inputs(33, 8, 65), at::kFloat);
  const Taught found = taught(in, random_teacher(33, 65, at::kFloat), {.share = 0, .temperature = 2});
  const Outcome expected = chunked(in);
  EXPECT_TRUE(at::equal(found.outcome.loss, expected.loss));
  EXPECT_TRUE(at::equal(found.outcome.embedding, expected.embedding));
  EXPECT_TRUE(at::equal(found.plain, expected.loss));
}

TEST(DistilledCrossEntropy, FromItselfIsNothing) {
  const Inputs in = cast(random_inputs(33, 8, 65), at::kFloat);
  const TeacherRows same_model = {in.hidden.detach(), in.embedding.detach(), in.bias.detach()};
  for (const double temperature : {1.0, 3.0}) {
    const Taught found = taught(in, same_model, {.share = 1, .temperature = temperature});
    EXPECT_EQ(found.outcome.loss.item<double>(), 0);
    EXPECT_EQ(found.outcome.hidden.abs().max().item<double>(), 0);
    EXPECT_EQ(found.outcome.embedding.abs().max().item<double>(), 0);
    EXPECT_GT(found.plain.item<double>(), 0);
  }
}

TEST(DistilledCrossEntropy, UnderAutocastIsThatOfBfloat16) {
  const WidenedProducts forced(false);
  const Inputs in = cast(random_inputs(64, 32, 300, 0.3), at::kFloat);
  const TeacherRows teacher = random_teacher(64, 300, at::kFloat);
  const Distillation how = {.share = 0.5, .temperature = 2};
  const Taught exact = taught(in, teacher, how);
  const Taught found = [&] {
    const ComputeIn bf16(Precision::kBf16, at::kCPU);
    return taught(in, teacher, how);
  }();
  EXPECT_EQ(found.outcome.embedding.scalar_type(), at::kFloat);
  EXPECT_GT(distance(found.outcome.loss, exact.outcome.loss), 0);
  EXPECT_TRUE(close(found.outcome.embedding, exact.outcome.embedding, 4 * 0x1p-8 * magnitude(exact.outcome.embedding)));
}

TEST(DistilledCrossEntropy, RefusesTeachersThatDoNotFit) {
  const Inputs in = random_inputs(4, 3, 5);
  const auto refusal = [&](const TeacherRows& teacher, const Distillation& how) {
    return error_message(
        [&] { distilled_cross_entropy_sum(in.hidden, in.embedding, in.targets, kIgnored, in.bias, teacher, how); });
  };
  EXPECT_THAT(refusal(random_teacher(4, 6), {.share = 0.5}), HasSubstr("the teacher has 6 tokens and the student 5"));
  EXPECT_THAT(refusal(random_teacher(3, 5), {.share = 0.5}), HasSubstr("for each of 3 rows"));
  EXPECT_THAT(refusal(random_teacher(4, 5), {.share = 1.5}), HasSubstr("not 1.5 and 1"));
  EXPECT_THAT(refusal(random_teacher(4, 5), {.share = 1, .temperature = 0}), HasSubstr("not 1 and 0"));
}

// All scores of both would be 512 MiB.
TEST(DistilledCrossEntropy, NeverHoldsAllScores) {
  constexpr int64_t N = 64, V = 1 << 20;
  const Tensor hidden = random_tensor({N, 1}, 1, at::kFloat).requires_grad_();
  const Tensor embedding = random_tensor({V, 1}, 2, at::kFloat).requires_grad_();
  const TeacherRows teacher = {random_tensor({N, 1}, 3, at::kFloat), random_tensor({V, 1}, 4, at::kFloat)};
  const AllocationMeter meter;
  const DistilledLoss loss =
      distilled_cross_entropy_sum(hidden, embedding, at::arange(N), kIgnored, {}, teacher, {.share = 0.5});
  torch::autograd::grad({loss.sum}, {hidden, embedding});
  EXPECT_LT(meter.peak(), 2 * N * V * static_cast<int64_t>(sizeof(float)) * 3 / 4);
}

// All scores would be 256 MiB, twice as much as a chunk.
TEST(CrossEntropy, NeverHoldsAllScores) {
  constexpr int64_t N = 64, V = 1 << 20;
  const Tensor hidden = random_tensor({N, 1}, 1, at::kFloat).requires_grad_();
  const Tensor embedding = random_tensor({V, 1}, 2, at::kFloat).requires_grad_();
  const AllocationMeter meter;
  torch::autograd::grad({cross_entropy_sum(hidden, embedding, at::arange(N), kIgnored)}, {hidden, embedding});
  EXPECT_LT(meter.peak(), N * V * static_cast<int64_t>(sizeof(float)) * 3 / 4);
}

TEST(CrossEntropy, OnCuda) {
  HS_NEEDS_CUDA();
  const Inputs in = random_inputs(9, 16, 1 << 12);
  const auto moved = [](const Tensor& x) { return x.detach().to(at::kCUDA).requires_grad_(x.requires_grad()); };
  const Outcome found = chunked({moved(in.hidden), moved(in.embedding), moved(in.targets), moved(in.bias)});
  const Outcome expected = plain(in);
  EXPECT_TRUE(same(found.loss, expected.loss));
  EXPECT_TRUE(same(found.hidden, expected.hidden));
  EXPECT_TRUE(same(found.embedding, expected.embedding));
  EXPECT_TRUE(same(found.bias, expected.bias));
}

}  // namespace
}  // namespace headshare
