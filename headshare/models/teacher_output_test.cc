#include "headshare/models/teacher_output.h"

#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/base/options/ignored_target.h"
#include "headshare/base/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

const Tensor& ids() {
  static const Tensor made = at::arange(2 * 7, at::kLong).remainder(13).view({2, 7});
  return made;
}

// Gives targets to all tokens but every fourth.
Tensor some_targets() {
  Tensor targets = at::arange(2 * 7, at::kLong).mul(5).remainder(13);
  for (int64_t i = 1; i < targets.size(0); i += 4) targets[i] = kIgnoredTarget;
  return targets.view({2, 7});
}

// Computes the formula in one piece, from the logits of all tokens.
Tensor formula(const Tensor& student, const Tensor& teacher, const Tensor& targets, const Distillation& how) {
  const Tensor rows = (targets.flatten() != kIgnoredTarget).nonzero().squeeze(1);
  const Tensor own = student.flatten(0, 1).index_select(0, rows);
  const Tensor theirs = teacher.flatten(0, 1).index_select(0, rows);
  const Tensor entropy =
      at::cross_entropy_loss(own, targets.flatten().index_select(0, rows), {}, at::Reduction::Sum, kIgnoredTarget);
  const double T = how.temperature;
  const Tensor divergence =
      at::kl_div(at::log_softmax(own / T, 1), at::log_softmax(theirs / T, 1), at::Reduction::Sum, /*log_target=*/true);
  return entropy * (1 - how.share) + divergence * (how.share * T * T);
}

// Compares values and gradients with respect to every parameter.
template <class Model>
void expect_same(Model& student, const Tensor& found, const Tensor& expected) {
  EXPECT_TRUE(close(found.detach(), expected.detach(), 1e-5 * magnitude(expected.detach())));
  const auto parameters = student->parameters();
  const auto gradient = [&](const Tensor& loss) {
    return torch::autograd::grad({loss}, parameters, {}, /*retain_graph=*/{}, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  };
  const auto own = gradient(found), wanted = gradient(expected);
  for (size_t i = 0; i < own.size(); ++i) {
    ASSERT_EQ(own[i].defined(), wanted[i].defined());
    if (!own[i].defined()) continue;
    EXPECT_TRUE(close(own[i], wanted[i], 2e-5 * magnitude(wanted[i])));
  }
}

const DistillationWeights kBoth = {.scores = {.share = 0.4, .temperature = 2}, .hidden = 0.7};

TEST(TeacherOutputTest, OfADecoderIsTheFormula) {
  for (const bool tied : {true, false}) {
    DecoderOptions wide = small_options("mha");
    wide.attention.d_model = 32;
    DecoderOptions options = small_options("mqa");
    options.tie_embeddings = tied;
    Decoder student = small_decoder(options, 2);
    const Decoder teacher = small_decoder(wide, 3);
    const TeacherOutput taught = teacher->teacher_output(ids(), some_targets());
    EXPECT_FALSE(taught.scores.hidden.requires_grad());
    const SummedLoss found = student->loss(ids(), some_targets(), taught, {.scores = kBoth.scores});
    const Tensor theirs = teacher->logits(teacher->hidden(ids())).detach();
    expect_same(student, found.sum,
                formula(student->logits(student->hidden(ids())), theirs, some_targets(), kBoth.scores));
    const SummedLoss plain = student->loss(ids(), some_targets());
    EXPECT_TRUE(close(found.plain, plain.sum.detach(), 1e-5 * magnitude(plain.sum.detach())));
    EXPECT_EQ(found.tokens, plain.tokens);
    EXPECT_THAT(error_message([&] { student->loss(ids(), some_targets(), taught, kBoth); }),
                HasSubstr("must be equally wide"));
  }
}

TEST(TeacherOutputTest, OfHiddenStatesIsTheirRelativeDifference) {
  Decoder student = small_decoder(small_options("mqa"), 2);
  const Decoder teacher = small_decoder(small_options("mha"), 3);
  const Tensor targets = some_targets();
  const TeacherOutput taught = teacher->teacher_output(ids(), targets);
  const SummedLoss found = student->loss(ids(), targets, taught, kBoth);
  const Tensor places = (targets.flatten() != kIgnoredTarget).nonzero().squeeze(1);
  const Tensor own = student->hidden(ids());
  const Tensor ours = own.flatten(0, 1).index_select(0, places);
  const Tensor theirs = teacher->hidden(ids()).detach().flatten(0, 1).index_select(0, places);
  const Tensor apart = (ours - theirs).square().sum() / theirs.square().sum();
  const auto count = static_cast<double>(places.size(0));
  const Tensor scores = teacher->logits(teacher->hidden(ids())).detach();
  expect_same(student, found.sum,
              formula(student->logits(own), scores, targets, kBoth.scores) + apart * (count * kBoth.hidden));
}

TEST(TeacherOutputTest, OfAnEncoderIsTheFormula) {
  Encoder student = small_encoder(small_encoder_options("mqa"), 2);
  const Encoder teacher = small_encoder(small_encoder_options("mha"), 3);
  const EncoderInput input{.ids = ids()};
  const TeacherOutput taught = teacher->teacher_output(input, some_targets());
  EXPECT_FALSE(taught.scores.hidden.requires_grad());
  const SummedLoss found = student->loss(input, some_targets(), taught, {.scores = kBoth.scores});
  const Tensor theirs = teacher->logits(teacher->hidden(input)).detach();
  expect_same(student, found.sum,
              formula(student->logits(student->hidden(input)), theirs, some_targets(), kBoth.scores));
  EXPECT_TRUE(at::equal(found.plain, student->loss(input, some_targets()).sum.detach()));
}

TEST(TeacherOutputTest, FromItselfIsNothingToLearn) {
  Encoder student = small_encoder(small_encoder_options("collaborative"));
  const EncoderInput input{.ids = ids()};
  const TeacherOutput taught = student->teacher_output(input, some_targets());
  const SummedLoss found =
      student->loss(input, some_targets(), taught, {.scores = {.share = 1, .temperature = 3}, .hidden = 1});
  EXPECT_EQ(found.sum.item<double>(), 0);
  found.sum.backward();
  for (const Tensor& one : student->parameters()) {
    if (!one.grad().defined()) continue;
    EXPECT_EQ(one.grad().abs().max().item<double>(), 0);
  }
}

TEST(TeacherOutputTest, ATeacherHasNoDropout) {
  Decoder teacher = small_decoder(small_options("mha"));
  teacher->train();
  EXPECT_THAT(error_message([&] { teacher->teacher_output(ids(), some_targets()); }), HasSubstr("evaluation mode"));
}

TEST(TeacherOutputTest, WithoutTargetsIsZero) {
  Encoder student = small_encoder(small_encoder_options("mqa"));
  const EncoderInput input{.ids = ids()};
  const Tensor none = at::full({2, 7}, kIgnoredTarget, at::kLong);
  const SummedLoss found = student->loss(input, none, student->teacher_output(input, none), kBoth);
  EXPECT_EQ(found.sum.item<double>(), 0);
  EXPECT_EQ(found.tokens, 0);
}

}  // namespace
}  // namespace headshare
