#include "headshare/train/trainer.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TrainOptions short_run(int64_t steps) {
  TrainOptions options{.steps = steps, .log_every = 1};
  options.schedule.learning_rate = 0.05;
  return options;
}

// Trains in `directory` from the start, without anything that stops it.
TrainResult train(FakeTask& task, const TrainOptions& options, const fs::path& directory,
                  Recorder* recorder = nullptr) {
  RunDirectory run(directory);
  Recorder own;
  return Trainer(task, options, run, {recorder == nullptr ? &own : recorder}).run();
}

std::vector<std::string> step_names(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::path& path : RunDirectory(directory).step_checkpoints()) names.push_back(path.filename());
  return names;
}

TEST(TrainerTest, MicroBatchesEqualOneBatchWeightedByTargets) {
  const TemporaryDirectory home;
  FakeTask whole({.rows = {8}}), parts({.rows = {2, 5, 1}});
  TrainOptions options = short_run(4);
  options.optimizer.epsilon = 1e-3;  // no rounding of a gradient near 0 becomes a step of full length
  Recorder of_whole, of_parts;
  train(whole, options, home / "whole", &of_whole);
  options.accumulation = 3;
  train(parts, options, home / "parts", &of_parts);
  EXPECT_LT(largest_difference(whole.weights(), parts.weights()), 1e-6);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(of_whole.losses[i], of_parts.losses[i], 1e-6 * of_whole.losses[i]);
}

TEST(TrainerTest, ALossOrGradientThatIsNotFiniteStopsBeforeTheParameters) {
  for (const auto& [poison, name] :
       {std::pair(FakeTask::Poison::kLoss, "loss"), std::pair(FakeTask::Poison::kGradient, "gradient norm")}) {
    const TemporaryDirectory home;
    RunDirectory run(home.path());
    FakeTask task({.poisoned_draw = 5, .poison = poison});
    TrainOptions options = short_run(10);
    options.save_every = 2;
    NamedTensors before;
    Recorder recorder([&](int64_t) { before = task.weights(); });
    Trainer trainer(task, options, run, {&recorder});
    const std::string text = error_message([&] { trainer.run(); });
    EXPECT_THAT(text, AllOf(HasSubstr(join_text("the ", name, " became")), HasSubstr("nan"), HasSubstr("in step 6"),
                            HasSubstr("step-00000004"), HasSubstr("--learning-rate")));
    EXPECT_EQ(recorder.losses.size(), 5u);
    EXPECT_EQ(largest_difference(task.weights(), before), 0);
    FakeTask again({});
    EXPECT_EQ(Trainer(again, options, run, {}).resume(), 4);
  }
}

TEST(TrainerTest, StopsEarlyWithoutABetterEvaluation) {
  const TemporaryDirectory home;
  FakeTask task({.losses = {3, 2, 2.5, 2, 1, 1, 1, 1, 1, 1}});  // equal is not better
  TrainOptions options = short_run(20);
  options.evaluate_every = 2;
  options.save_every = 20;
  options.patience = 2;
  Recorder recorder;
  const TrainResult result = train(task, options, home.path(), &recorder);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.steps, 8);
  EXPECT_EQ(result.best_step, 4);
  EXPECT_EQ(result.best_loss, 2);
  EXPECT_EQ(fs::path(result.best_model).filename(), "best-00000004");
  ASSERT_EQ(recorder.evaluations.size(), 4u);
  EXPECT_TRUE(recorder.evaluations[1].best);
  EXPECT_FALSE(recorder.evaluations[3].best);
  EXPECT_THAT(step_names(home.path()), ElementsAre("step-00000008"));

  FakeTask again({.losses = {3, 2, 2.5, 2, 1}});
  RunDirectory run(home.path());
  Trainer resumed(again, options, run, {});
  EXPECT_EQ(resumed.resume(), 8);
  EXPECT_EQ(resumed.run().steps, 8);  // it has stopped for good
}

TEST(TrainerTest, KeepsTheLastCheckpointsAndTheBestModel) {
  const TemporaryDirectory home;
  FakeTask task({.losses = {3, 1, 2, 4, 5}});
  TrainOptions options = short_run(10);
  options.evaluate_every = options.save_every = 2;
  options.keep_last = 3;
  NamedTensors at_best;
  Recorder recorder([&](int64_t step) {
    if (step == 4) at_best = task.weights();
  });
  const TrainResult result = train(task, options, home.path(), &recorder);
  EXPECT_THAT(step_names(home.path()), ElementsAre("step-00000006", "step-00000008", "step-00000010"));
  EXPECT_EQ(largest_difference(read_tensors(fs::path(result.best_model) / "model.safetensors"), at_best), 0);
  EXPECT_EQ(largest_difference(read_tensors(*RunDirectory(home.path()).last_checkpoint() / "model.safetensors"),
                               task.weights()),
            0);
}

// Returns the mean of the weights in these checkpoints.
NamedTensors mean_of(const std::vector<fs::path>& checkpoints) {
  NamedTensors mean;
  for (const fs::path& one : checkpoints) {
    for (const auto& [name, tensor] : read_tensors(one / "model.safetensors")) {
      const Tensor part = tensor / static_cast<double>(checkpoints.size());
      mean[name] = mean.contains(name) ? mean[name] + part : part;
    }
  }
  return mean;
}

TEST(TrainerTest, AveragesTheLastCheckpoints) {
  const TemporaryDirectory home;
  for (const double loss_of_average : {0.5, 9.0}) {
    const fs::path folder = home / std::to_string(loss_of_average);
    FakeTask task({.losses = {4, 3, 2, loss_of_average}});
    TrainOptions options = short_run(6);
    options.evaluate_every = options.save_every = 2;
    options.keep_last = 1;
    options.average_last = 2;  // wins over keep_last
    options.patience = 1;      // of the run, not of the average behind it
    const TrainResult result = train(task, options, folder);
    EXPECT_FALSE(result.stopped_early);
    RunDirectory run(folder);
    ASSERT_EQ(run.step_checkpoints().size(), 2u);
    EXPECT_LT(largest_difference(task.seen_by_evaluation, mean_of(run.step_checkpoints())), 1e-6);
    const NamedTensors last = read_tensors(run.step_checkpoints().back() / "model.safetensors");
    EXPECT_GT(largest_difference(task.seen_by_evaluation, last), 1e-3);
    EXPECT_EQ(largest_difference(task.weights(), last), 0);  // the run's own weights are back
    const NamedTensors best = read_tensors(fs::path(result.best_model) / "model.safetensors");
    EXPECT_EQ(largest_difference(best, loss_of_average < 2 ? task.seen_by_evaluation : last), 0);
    EXPECT_EQ(result.best_loss, std::min(2.0, loss_of_average));
  }
}

TEST(TrainerTest, AveragesWithoutValidationData) {
  const TemporaryDirectory home;
  FakeTask task({.judged = false});
  TrainOptions options = short_run(6);
  options.save_every = 2;
  options.average_last = 3;
  const TrainResult result = train(task, options, home.path());
  EXPECT_EQ(result.best_model, "");
  RunDirectory run(home.path());
  const NamedTensors average = read_tensors(run.checkpoints() / "average" / "model.safetensors");
  EXPECT_LT(largest_difference(average, mean_of(run.step_checkpoints())), 1e-6);
}

TEST(TrainerTest, EvaluatesAndSavesTheMovingAverage) {
  const TemporaryDirectory home;
  FakeTask task({.losses = {2, 1}});
  TrainOptions options = short_run(8);
  options.evaluate_every = 4;
  options.ema_decay = 0.5;
  NamedTensors average = task.weights();
  NamedTensors now;
  Recorder recorder([&](int64_t) {
    now = task.weights();
    for (auto& [name, tensor] : average) tensor = 0.5 * tensor + 0.5 * now.at(name);
  });
  const TrainResult result = train(task, options, home.path(), &recorder);
  EXPECT_LT(largest_difference(task.seen_by_evaluation, average), 1e-6);
  EXPECT_GT(largest_difference(task.seen_by_evaluation, now), 1e-3);
  EXPECT_EQ(largest_difference(task.weights(), now), 0);  // restored
  EXPECT_EQ(
      largest_difference(read_tensors(fs::path(result.best_model) / "model.safetensors"), task.seen_by_evaluation), 0);
  const RunDirectory run(home.path());
  EXPECT_EQ(largest_difference(read_tensors(*run.last_checkpoint() / "model.safetensors"), now), 0);
}

TEST(TrainerTest, AScheduleThatDoesNotFitIsRefusedAtOnce) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  FakeTask task({});
  TrainOptions options = short_run(5);
  options.schedule.warmup_steps = 6;
  EXPECT_THAT(error_message([&] { Trainer(task, options, run, {}); }), AllOf(HasSubstr("6"), HasSubstr("5")));
}

TEST(TrainerTest, ReportsWhatHappened) {
  const TemporaryDirectory home;
  FakeTask task({.rows = {3, 4}});
  TrainOptions options = short_run(7);
  options.log_every = 3;
  options.accumulation = 2;
  struct Reports : Observer {
    void on_step(const StepReport& report) override { steps.push_back(report); }
    std::vector<StepReport> steps;
  } reports;
  RunDirectory run(home.path());
  const TrainResult result = Trainer(task, options, run, {&reports}).run();
  ASSERT_EQ(reports.steps.size(), 4u);  // the first, every third, the last
  EXPECT_EQ(reports.steps[1].step, 3);
  EXPECT_EQ(reports.steps[1].tokens, 21);
  EXPECT_EQ(reports.steps[1].total_steps, 7);
  EXPECT_EQ(reports.steps[1].learning_rate, learning_rate_at(options.schedule, 2, 7));
  EXPECT_GT(reports.steps[1].gradient_norm, 0);
  EXPECT_DOUBLE_EQ(reports.steps[3].epochs, 49.0 / kFakeExamples);
  EXPECT_EQ(result.tokens, 49);
  EXPECT_EQ(to_json(result).at("steps"), 7);
}

}  // namespace
}  // namespace headshare
