#include "headshare/tasks/translation/translation_task.h"

#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/translation/testing.h"
#include "headshare/tasks/translation/translator.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

class TranslationTaskTest : public testing::Test {
 protected:
  TaskOptions task_options(const std::string& scheme = "mha") const {
    TaskOptions options = small_translation_options(scheme);
    options.own<TranslationTaskOptions>() = small_translation(files_.path());
    return options;
  }
  static std::unique_ptr<Task> task_of(const TaskOptions& options, uint64_t seed = 1) {
    const auto experiment = task_family("translation").open(options, {});
    return experiment->trial(options, seed, at::kCPU, {}).task;
  }

  TemporaryDirectory files_;
};

TrainOptions short_training(int64_t steps) {
  TrainOptions options{.steps = steps, .evaluate_every = 20, .log_every = 10};
  options.schedule.learning_rate = 1e-2;
  return options;
}

TEST_F(TranslationTaskTest, LearnsToReverse) {
  TaskOptions options = task_options();
  options.model.attention.d_model = 32;
  options.own<TranslationTaskOptions>().select_by = SelectBy::kBleu;
  const std::unique_ptr<Task> task = task_of(options);
  const Evaluation before = task->evaluate(Part::kTest, {});
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  Trainer(*task, short_training(800), run, {}).run();
  const Evaluation after = task->evaluate(Part::kTest, {});
  EXPECT_LT(after.loss, before.loss / 4);
  ASSERT_EQ(after.scores.size(), 2u);
  EXPECT_EQ(after.scores[0].name, "bleu");
  EXPECT_GT(after.scores[0].value, 50);
  EXPECT_EQ(*after.goal, after.scores[0].value);
  EXPECT_EQ(after.outputs.size(), 10u);
  EXPECT_EQ(after.blocks.size(), 10u);
}

// Padding, the order of pairs and how they are put together change no loss.
TEST_F(TranslationTaskTest, ItsLossIsThatOfEveryPairAlone) {
  const TaskOptions options = task_options();
  const auto experiment = task_family("translation").open(options, {});
  const Trial trial = experiment->trial(options, 1, at::kCPU, {});
  const Evaluation found = trial.task->evaluate(Part::kValidation, {});
  const TranslationData data = open_translation_data(options, /*progress=*/{});
  const PairData& pairs = *data.validation.pairs;
  const EncoderDecoder translator(std::dynamic_pointer_cast<EncoderDecoderImpl>(trial.model));
  double nats = 0;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    const std::vector<int64_t> source(pairs.source(i).begin(), pairs.source(i).end());
    const std::vector<int64_t> target(pairs.target(i).begin(), pairs.target(i).end());
    std::vector<int64_t> input = {translator->options().marks.start};
    input.insert(input.end(), target.begin(), target.end() - 1);
    const auto row = [](const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); };
    nats += translator->token_losses({.ids = row(source)}, row(input), row(target)).sum().item<double>();
  }
  EXPECT_NEAR(found.loss, nats / static_cast<double>(pairs.target_tokens()), 1e-5);
  EXPECT_EQ(found.targets, pairs.target_tokens());
  EXPECT_TRUE(found.scores.empty());  // validation is not translated where the loss chooses
}

TEST_F(TranslationTaskTest, SmoothingIsNotReported) {
  const std::unique_ptr<Task> task = task_of(task_options());
  task->draw(1);
  const double smoothed = task->loss_sum(0).item<double>();
  ASSERT_TRUE(task->plain_loss_sum());
  EXPECT_NE(smoothed, *task->plain_loss_sum());
}

// A run that is stopped after 7 of 14 steps and continued is the same as one that did not stop.
TEST_F(TranslationTaskTest, GoesOnBitForBit) {
  TaskOptions options = task_options("mhe_mul");
  options.model.dropout = 0.2;
  const auto weights_after = [&](std::vector<int64_t> ends) {
    const TemporaryDirectory home;
    NamedTensors weights;
    for (const int64_t end : ends) {
      const std::unique_ptr<Task> task = task_of(options);
      RunDirectory run(home.path());
      TrainOptions training = short_training(14);
      training.save_every = 7;
      Trainer trainer(*task, training, run, {},
                      [&] { return end < 14 && fs::exists(home.path() / "checkpoints" / "step-7"); });
      trainer.resume();
      try {
        trainer.run();
      } catch (const Interrupted&) {
        EXPECT_LT(end, 14);
      }
      weights = model_tensors(*task->model());
    }
    return weights;
  };
  const NamedTensors whole = weights_after({14}), parts = weights_after({7, 14});
  for (const auto& [name, tensor] : whole) EXPECT_TRUE(at::equal(tensor, parts.at(name))) << name;
}

// References are compared as they are written.
TEST_F(TranslationTaskTest, GoesOnWithTheSamePartsOnly) {
  const TaskOptions options = task_options();
  const nlohmann::json state = task_of(options)->state();
  EXPECT_EQ(error_message([&] { task_of(options)->restore(state, "here"); }), "no error");
  for (const std::string part : {"validation", "test"}) {
    const fs::path target = files_.path() / (part + ".tgt");
    const std::string before = read_file(target);
    write_file(target, "another\n" + before.substr(before.find('\n') + 1));
    EXPECT_THAT(error_message([&] { task_of(options)->restore(state, "here"); }),
                HasSubstr("another " + part + " part"));
    write_file(target, before);
  }
}

TEST_F(TranslationTaskTest, SavesWhatTranslates) {
  const TaskOptions options = task_options();
  const std::unique_ptr<Task> task = task_of(options);
  task->save(files_.path() / "model");
  LoadedTranslator loaded = load_translator(files_.path() / "model");
  const Translator translator(loaded.model, loaded.tokenizers);
  EXPECT_EQ(translate_all(translator, {{}, translator.encode("one two")}, {.beam = 1, .max_length = 5}).size(), 2u);
  EXPECT_THAT(error_message([&] { translator.translate({.sources = {{}}}); }),
              HasSubstr("a source of 0 tokens cannot be translated"));
}

TEST_F(TranslationTaskTest, SeparateTokenizersShareNoEmbedding) {
  TaskOptions options = task_options();
  options.own<TranslationTaskOptions>().separate_tokenizers = true;
  const auto experiment = task_family("translation").open(options, {});
  const auto model = experiment->model(options).as<EncoderDecoderOptions>();
  EXPECT_FALSE(model.share_embeddings);
  EXPECT_THAT(experiment->subject().data, HasSubstr("for the source"));
}

TEST_F(TranslationTaskTest, RefusesWhatDoesNotFit) {
  const auto refusal = [&](const std::function<void(TaskOptions&)>& change) {
    TaskOptions options = task_options();
    const TaskOptions untouched = options;
    change(options);
    return error_message([&] { task_family("translation").check(options, untouched); });
  };
  EXPECT_THAT(refusal([](TaskOptions& o) { o.batch_size = 99; }), HasSubstr("--batch-tokens"));
  EXPECT_THAT(refusal([](TaskOptions& o) { o.model.context = 32; }),
              HasSubstr("--max-pair-length is 64 and the model has positions for --context 32"));
  EXPECT_THAT(refusal([](TaskOptions& o) { o.own<TextOptions>().data.text = {"book.txt"}; }),
              HasSubstr("--text is for"));
}

TEST_F(TranslationTaskTest, NeedsPairs) {
  const auto refusal = [&](PairFiles PairOptions::*part) {
    TaskOptions options = task_options();
    options.own<TranslationTaskOptions>().pairs.*part = {};
    return error_message([&] { task_family("translation").open(options, {}); });
  };
  EXPECT_THAT(refusal(&PairOptions::train), HasSubstr("give --source FILE"));
  EXPECT_THAT(refusal(&PairOptions::validation), HasSubstr("--validation-source"));
}

}  // namespace
}  // namespace headshare
