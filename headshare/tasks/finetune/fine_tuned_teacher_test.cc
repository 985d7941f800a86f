#include "headshare/tasks/finetune/fine_tuned_teacher.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <limits>

#include "headshare/base/testing.h"
#include "headshare/data/test_support.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/finetune/task_note.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DivergencesTest, AreTheFormulaAlongClasses) {
  const Tensor student = random_tensor({3, 4}, 1, at::kFloat), teacher = random_tensor({3, 4}, 2, at::kFloat);
  const Tensor own = at::log_softmax(student / 2, 1), wanted = at::log_softmax(teacher / 2, 1);
  EXPECT_TRUE(close(divergences(student, teacher, 2), (wanted.exp() * (wanted - own)).sum(1), 1e-6));
}

TEST(DivergencesTest, LeaveOutPlacesWithoutAToken) {
  const float nowhere = -std::numeric_limits<float>::infinity();
  Tensor student = random_tensor({2, 5, 2}, 1, at::kFloat), teacher = random_tensor({2, 5, 2}, 2, at::kFloat);
  const Tensor expected = divergences(student.narrow(1, 0, 3), teacher.narrow(1, 0, 3), 2);
  for (Tensor* one : {&student, &teacher}) one->narrow(1, 3, 2).fill_(nowhere);
  student.requires_grad_();
  const Tensor found = divergences(student, teacher, 2);
  EXPECT_EQ(found.sizes(), at::IntArrayRef({2, 2}));
  EXPECT_TRUE(close(found.detach(), expected, 1e-6));
  found.sum().backward();
  EXPECT_TRUE(at::isfinite(student.grad()).all().item<bool>());
  EXPECT_EQ(student.grad().narrow(1, 3, 2).abs().max().item<double>(), 0);
}

TEST(DivergencesTest, LeaveThemOutAtAnyTemperature) {
  constexpr double kHot = 1000;
  Tensor student = random_tensor({2, 5}, 1, at::kFloat) * 1e3, teacher = random_tensor({2, 5}, 2, at::kFloat) * 1e3;
  const Tensor expected = divergences(student.narrow(1, 0, 3), teacher.narrow(1, 0, 3), kHot);
  for (Tensor* one : {&student, &teacher}) one->narrow(1, 3, 2).fill_(-std::numeric_limits<float>::infinity());
  EXPECT_TRUE(close(divergences(student, teacher, kHot), expected, 1e-6));
}

TEST(TaughtSumTest, AShareOfNoneIsThePlainLoss) {
  const Tensor losses = random_tensor({3}, 1, at::kFloat), apart = random_tensor({3}, 2, at::kFloat);
  const DistillationWeights none{.scores = {.share = 0, .temperature = 2}},
      some{.scores = {.share = 0.25, .temperature = 2}};
  EXPECT_TRUE(at::equal(taught_sum(losses, apart, {}, {}, none), losses.sum()));
  EXPECT_TRUE(close(taught_sum(losses, apart, {}, {}, some), (losses * 0.75 + apart).sum(), 1e-5));
}

TEST(TaughtSumTest, HiddenStatesAreComparedForEachExample) {
  const Tensor losses = random_tensor({3}, 1, at::kFloat), apart = random_tensor({3}, 2, at::kFloat);
  const Tensor theirs = random_tensor({7, 4}, 3, at::kFloat), own = theirs * 1.5;
  const DistillationWeights how{.scores = {.share = 0, .temperature = 1}, .hidden = 2};
  EXPECT_TRUE(close(taught_sum(losses, apart, own, theirs, how), losses.sum() + 3 * 2 * 0.25, 1e-5));
}

class TunedTeacherTest : public DirectoryTest {
 protected:
  // Saves a model of the task `classify` with the labels "no" and "yes" as a teacher.
  DistillationOptions tuned(int64_t context = 16) {
    EncoderOptions options = small_encoder_options("mha");
    options.vocabulary = small_wordpiece()->vocabulary_size();
    options.context = context;
    options.masked_head = false;
    options.task_head = head();
    save_model(directory_ / "tuned", small_encoder(options), small_wordpiece().get());
    write_task_note(directory_ / "tuned", {.task = "classify", .max_length = context});
    return {.teacher = (directory_ / "tuned").string()};
  }

  static TaskHeadOptions head() { return {.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"no", "yes"}}; }

  static std::string refusal(const DistillationOptions& options, const std::string& task, const TaskHeadOptions& head,
                             const Tokenizer& tokenizer, int64_t length = 16, int64_t d_model = 16) {
    return error_message([&] {
      open_tuned_teacher(options,
                         {.task = task, .head = head, .tokenizer = tokenizer, .length = length, .d_model = d_model});
    });
  }
};

TEST_F(TunedTeacherTest, IsOpenedWithItsShare) {
  DistillationOptions options = tuned();
  options.learning.scores = {.share = 0.25, .temperature = 2};
  const std::shared_ptr<Tokenizer> tokenizer = small_wordpiece();
  const FineTunedTeacher teacher =
      open_tuned_teacher(options, {.task = "classify", .head = head(), .tokenizer = *tokenizer, .length = 16});
  EXPECT_TRUE(teacher.teaches());
  EXPECT_FALSE(teacher.model->is_training());
  EXPECT_EQ(teacher.how.scores.temperature, 2);
  EXPECT_FALSE(open_tuned_teacher({}, {.task = "classify", .tokenizer = *tokenizer}).teaches());
}

TEST_F(TunedTeacherTest, IsEvaluatedOnce) {
  const std::shared_ptr<Tokenizer> tokenizer = small_wordpiece();
  const FineTunedTeacher teacher =
      open_tuned_teacher(tuned(), {.task = "classify", .head = head(), .tokenizer = *tokenizer, .length = 16});
  int asked = 0;
  const auto evaluate = [&] { return Evaluation{.loss = static_cast<double>(++asked)}; };
  EXPECT_EQ(teacher.evaluated(evaluate).loss, 1);
  EXPECT_EQ(teacher.evaluated(evaluate).loss, 1);
  EXPECT_EQ(asked, 1);
}

TEST_F(TunedTeacherTest, MustHaveLearntTheSame) {
  const DistillationOptions options = tuned();
  const std::shared_ptr<Tokenizer> tokenizer = small_wordpiece();
  EXPECT_EQ(refusal(options, "classify", head(), *tokenizer), "no error");
  EXPECT_THAT(refusal(options, "glue/cola", head(), *tokenizer),
              AllOf(HasSubstr("was fine-tuned on classify"), HasSubstr("the task is glue/cola")));
  TaskHeadOptions other = head();
  other.labels = {"yes", "no"};
  EXPECT_THAT(refusal(options, "classify", other, *tokenizer),
              AllOf(HasSubstr("no and yes"), HasSubstr("yes and no"), HasSubstr("same labels")));
  EXPECT_THAT(refusal(options, "classify", head(), ByteTokenizer()),
              AllOf(HasSubstr("wordpiece, 11 tokens"), HasSubstr("bytes, 256 tokens")));
  EXPECT_THAT(refusal(options, "classify", head(), *tokenizer, 17),
              AllOf(HasSubstr("positions for 16 tokens"), HasSubstr("rows have 17")));
  DistillationOptions hidden = options;
  hidden.learning.hidden = 1;
  EXPECT_EQ(refusal(hidden, "classify", head(), *tokenizer), "no error");
  EXPECT_THAT(refusal(hidden, "classify", head(), *tokenizer, 16, 24), AllOf(HasSubstr("width 16, the student's 24")));
  EXPECT_EQ(refusal(options, "classify", head(), *tokenizer, 16, 24), "no error");
}

}  // namespace
}  // namespace headshare
