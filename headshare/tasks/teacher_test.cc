#include "headshare/tasks/teacher.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/data/test_support.h"
#include "headshare/models/testing.h"
#include "headshare/ops/precision.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 9;

class TeacherTest : public DirectoryTest {
 protected:
  // Returns the options of a decoder on bytes, of width 16, with dropout that a teacher must not have.
  static DecoderOptions decoder_options(int64_t vocabulary = 256) {
    DecoderOptions options = small_options("mha");
    options.vocabulary = vocabulary;
    options.context = 8;
    options.dropout = 0.5;
    return options;
  }

  DistillationOptions decoder(const DecoderOptions& options, const Tokenizer& tokenizer = ByteTokenizer(),
                              uint64_t seed = 5) {
    save_model(directory_ / "decoder", small_decoder(options, seed), &tokenizer);
    return {.teacher = (directory_ / "decoder").string()};
  }
  DistillationOptions decoder() { return decoder(decoder_options()); }

  DistillationOptions encoder(bool masked_head = true) {
    EncoderOptions options = small_encoder_options("mha");
    options.vocabulary = small_wordpiece()->vocabulary_size();
    options.context = 16;
    options.masked_head = masked_head;
    save_model(directory_ / "encoder", small_encoder(options, 5), small_wordpiece().get());
    return {.teacher = (directory_ / "encoder").string()};
  }

  // Makes the student of small_language() that learns from `teacher`.
  static LanguageModelTask student(const DistillationOptions& teacher, const std::string& scheme = "mha") {
    LanguageModelOptions options = small_language(scheme);
    options.distillation = teacher;
    return {options, small_data(), kSeed, at::kCPU};
  }

  static std::string refusal(const DistillationOptions& teacher, const LanguageModelOptions& own = small_language()) {
    LanguageModelOptions options = own;
    options.distillation = teacher;
    return error_message([&] { LanguageModelTask(options, small_data(), kSeed, at::kCPU); });
  }
};

TEST_F(TeacherTest, AStudentLearnsFromItsScoresAndIsJudgedWithoutIt) {
  DistillationOptions teacher = decoder();
  teacher.learning.scores.share = 0;
  LanguageModelTask plain = student(teacher);
  teacher.learning.scores.share = 0.5;
  LanguageModelTask taught = student(teacher);
  EXPECT_EQ(plain.draw(1), taught.draw(1));
  const double entropy = plain.loss_sum(0).item<double>();
  EXPECT_FALSE(plain.plain_loss_sum());
  EXPECT_NE(taught.loss_sum(0).item<double>(), entropy);
  EXPECT_NEAR(*taught.plain_loss_sum(), entropy, 1e-4 * entropy);
  EXPECT_EQ(taught.evaluate(Part::kValidation, {}).loss, plain.evaluate(Part::kValidation, {}).loss);
  // The teacher draws no random numbers: asked again it says the same.
  const double again = taught.loss_sum(0).item<double>();
  EXPECT_EQ(taught.loss_sum(0).item<double>(), again);
}

TEST_F(TeacherTest, IsEvaluatedAsTheModelIs) {
  LanguageModelTask task = student(decoder());
  const std::optional<Evaluation> found = task.evaluate_teacher({});
  ASSERT_TRUE(found);
  LanguageModelOptions own = small_language();
  own.model = decoder_options();
  LanguageModelTask teacher(own, small_data(), kSeed, at::kCPU);
  load_tensors(*teacher.model(), read_tensors(directory_ / "decoder" / "model.safetensors"), "here");
  EXPECT_NEAR(found->loss, teacher.evaluate(Part::kValidation, {}).loss, 1e-6);
  EXPECT_FALSE(LanguageModelTask(small_language(), small_data(), kSeed, at::kCPU).evaluate_teacher({}));
}

TEST_F(TeacherTest, GradientsOfMicroBatchesAddUp) {
  DecoderOptions options = decoder_options();
  options.dropout = 0;
  const Decoder teacher = small_decoder(options, 5);
  options.attention.scheme = "mqa";
  const Tensor ids = at::arange(4 * 8).view({4, 8}) % 17;
  const Tensor targets = at::where(ids == 5, kIgnoredTarget, ids + 1);  // not as many in each half
  const DistillationWeights how{.scores = {.share = 0.5, .temperature = 2}};
  const auto gradients = [&](int64_t micro_batches) {
    const Decoder student = small_decoder(options, 6);
    for (int64_t i = 0; i < micro_batches; ++i) {
      const int64_t rows = 4 / micro_batches;
      const Tensor some = ids.narrow(0, i * rows, rows), wanted = targets.narrow(0, i * rows, rows);
      student->loss(some, wanted, teacher->teacher_output(some, wanted), how).sum.backward();
    }
    NamedTensors found;
    for (const auto& one : student->named_parameters()) found.emplace(one.key(), one.value().grad());
    return found;
  };
  const NamedTensors whole = gradients(1);
  for (const auto& [name, gradient] : gradients(2)) {
    EXPECT_TRUE(close(gradient, whole.at(name), 1e-4)) << name;
    EXPECT_GT(gradient.abs().max().item<double>(), 0) << name;
  }
}

TEST_F(TeacherTest, OfItselfThereIsNothingToLearn) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const WidenedProducts forced(false);
    DistillationOptions teacher = decoder();
    teacher.learning = {.scores = {.share = 1, .temperature = 2}, .hidden = 1};
    LanguageModelOptions options = small_language();
    options.model = decoder_options();
    options.model.dropout = 0;
    options.distillation = teacher;
    LanguageModelTask task(options, small_data(), kSeed, at::kCPU);
    load_tensors(*task.model(), read_tensors(directory_ / "decoder" / "model.safetensors"), "here");
    task.draw(1);
    const ComputeIn guard(precision, at::kCPU);
    EXPECT_EQ(task.loss_sum(0).item<double>(), 0);
  }
}

TEST_F(TeacherTest, GivesItsTokenizerAndVocabularyWhereNoneAreNamed) {
  LanguageModelOptions options = small_language();
  options.tokenizer.kind = TokenizerKind::kWords;
  options.data.text = {file("text.txt", sentences(1000))};
  options.distillation = decoder(decoder_options(300));
  EXPECT_EQ(likely_vocabulary(options), 300);
  const LanguageData data = open_language_data(options);
  EXPECT_EQ(data.tokenizer->kind(), "bytes");
  EXPECT_EQ(LanguageModelTask(options, data, kSeed, at::kCPU).decoder()->options().vocabulary, 300);
}

TEST_F(TeacherTest, TeachesEncodersAtMaskedTokens) {
  LanguageModelOptions options = small_language();
  MaskedOptions masked;
  options.model = EncoderOptions();
  options.model.context = 16;
  options.model.layers = 1;
  options.model.attention = {.scheme = "mqa", .d_model = 16, .heads = 2};
  LanguageData data{.tokenizer = small_wordpiece(), .splits = {}};
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 3 == 0 ? "the fox " : "a dogs ";
  data.splits =
      split_tokens(TokenData::from_memory(data.tokenizer->encode(text), text.size()), 0.2, 0.1, *data.tokenizer);
  options.distillation = encoder();
  options.distillation.learning.scores.share = 1;
  MaskedLanguageModelTask task(options, masked, data, kSeed, at::kCPU);
  task.draw(1);
  const double divergence = task.loss_sum(0).item<double>();
  EXPECT_GT(divergence, 0);
  EXPECT_NE(divergence, *task.plain_loss_sum());
  EXPECT_GT(task.evaluate_teacher({})->loss, 0);
  // Hidden states count with the weight that the options set; both are 16 wide.
  const auto with_hidden = [&](double weight) {
    options.distillation.learning.hidden = weight;
    MaskedLanguageModelTask one(options, masked, data, kSeed, at::kCPU);
    one.draw(1);
    return one.loss_sum(0).item<double>();
  };
  EXPECT_EQ(with_hidden(0), divergence);
  EXPECT_GT(with_hidden(1), divergence);
  EXPECT_NEAR(with_hidden(2) - divergence, 2 * (with_hidden(1) - divergence), 1e-4);
  options.distillation.learning.hidden = 0;
  options.distillation = encoder(/*masked_head=*/false);
  EXPECT_THAT(error_message([&] { MaskedLanguageModelTask(options, masked, data, kSeed, at::kCPU); }),
              HasSubstr("has no masked-LM head"));
}

TEST_F(TeacherTest, IsRefusedWithBothValues) {
  EXPECT_THAT(refusal(decoder(decoder_options(), *small_wordpiece())),
              AllOf(HasSubstr("wordpiece, 11 tokens"), HasSubstr("bytes, 256 tokens")));
  DecoderOptions shorter = decoder_options();
  shorter.context = 7;
  EXPECT_THAT(refusal(decoder(shorter)), AllOf(HasSubstr("positions for 7 tokens"), HasSubstr("context is 8")));
  shorter.positions = PositionKind::kAlibi;
  EXPECT_EQ(refusal(decoder(shorter)), "no error");
  LanguageModelOptions roomy = small_language();
  roomy.vocabulary = 301;
  EXPECT_THAT(refusal(decoder(), roomy), AllOf(HasSubstr("vocabulary of 256"), HasSubstr("301")));
  DecoderOptions wide = decoder_options();
  wide.attention.d_model = 32;
  DistillationOptions hidden = decoder(wide);
  EXPECT_EQ(refusal(hidden), "no error");
  hidden.learning.hidden = 1;
  EXPECT_THAT(refusal(hidden), AllOf(HasSubstr("have width 32"), HasSubstr("16")));
  EXPECT_THAT(refusal({.teacher = (directory_ / "nowhere").string()}), HasSubstr("nowhere"));
  encoder();
  EXPECT_THAT(
      error_message([&] { find_teacher({.teacher = (directory_ / "encoder").string()}, resolve(decoder_options())); }),
      AllOf(HasSubstr("is an encoder"), HasSubstr("a decoder")));
}

TEST_F(TeacherTest, WithNumbersThatAreNotFiniteIsRefused) {
  const DistillationOptions teacher = decoder();
  const fs::path weights = directory_ / "decoder" / "model.safetensors";
  NamedTensors tensors = read_tensors(weights);
  tensors.at("norm.weight")[3] = std::nan("");
  write_tensors(weights, tensors);
  EXPECT_THAT(refusal(teacher), AllOf(HasSubstr("'norm.weight' has 1 values of 16"), HasSubstr("not finite")));
}

TEST_F(TeacherTest, WithoutOneNothingCanBeSaidAboutIt) {
  DistillationOptions options;
  EXPECT_EQ(error_message([&] { check_distillation(options); }), "no error");
  options.learning.scores.temperature = 2;
  EXPECT_THAT(error_message([&] { check_distillation(options); }),
              HasSubstr("--teacher-temperature needs --teacher MODEL; give one, or leave"));
}

TEST_F(TeacherTest, TakesMemoryThatIsCounted) {
  const TrainingShape shape{.batch = 3, .length = 8};
  const double bytes = teacher_bytes(decoder(), shape);
  EXPECT_GE(bytes, parameter_bytes(ModelOptions(resolve(decoder_options()))));
  EXPECT_EQ(teacher_bytes({}, shape), 0);
}

}  // namespace
}  // namespace headshare
