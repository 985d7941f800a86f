// These tests train with several processes, which are threads here.
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"
#include "headshare/train/thread_reducer.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TrainOptions joint_options() {
  TrainOptions options{
      .steps = 12, .accumulation = 4, .evaluate_every = 2, .save_every = 3, .log_every = 1, .ema_decay = 0.5};
  options.schedule = {.schedule = Schedule::kConstant, .learning_rate = 0.05};
  options.optimizer.epsilon = 1e-3;  // no rounding of a gradient near 0 becomes a step of full length
  return options;
}

// This is what a process ends with.
struct Outcome {
  std::string error;
  NamedTensors weights;
  TrainResult result;
};

// Trains in `home`, or goes on there, with several processes. `stops` is asked in each after every step.
std::vector<Outcome> train_jointly(int64_t processes, const TrainOptions& options, const fs::path& home,
                                   const FakeTask::Options& of_task,
                                   const std::function<bool(int64_t rank, int64_t calls)>& stops = {}) {
  std::vector<Outcome> outcomes(static_cast<size_t>(processes));
  run_together(processes, [&](Reducer& reducer) {
    Outcome& mine = outcomes[static_cast<size_t>(reducer.rank())];
    RunDirectory directory(home, /*looks_on=*/!leads(reducer));
    FakeTask task(of_task);
    int64_t calls = 0;
    const auto stop = [&] { return stops && stops(reducer.rank(), ++calls); };
    Trainer trainer(task, options, directory, {}, stop, reducer);
    try {
      mine.error = error_message([&] {
        trainer.resume();
        mine.result = trainer.run();
      });
    } catch (const Interrupted& stopped) {
      mine.error = stopped.what();
    }
    mine.weights = task.weights();
  });
  return outcomes;
}

TEST(JointTrainingTest, ARunGoesOnWithAnyNumberOfProcesses) {
  const FakeTask::Options task{.dropout = 0.3, .rows = {2, 5, 1}};
  const TemporaryDirectory home;
  const Outcome whole = train_jointly(1, joint_options(), home / "whole", task).front();
  TrainOptions options = joint_options();
  int64_t steps = 0;
  for (const auto& [processes, shard] : {std::pair(2, true), std::pair(3, false), std::pair(1, false)}) {
    options.steps = steps += 4;
    options.optimizer.shard = shard;
    for (const Outcome& one : train_jointly(processes, options, home / "parts", task)) {
      ASSERT_EQ(one.error, "no error");
      EXPECT_EQ(one.result.steps, steps);
      if (steps == 12) {
        EXPECT_LT(largest_difference(one.weights, whole.weights), 1e-5);
      }
    }
  }
}

TEST(JointTrainingTest, AllStopAfterTheSameStepWithOneCheckpoint) {
  const TemporaryDirectory home;
  const std::vector<Outcome> outcomes =
      train_jointly(3, joint_options(), home.path(), {.judged = false},
                    [](int64_t rank, int64_t calls) { return rank == 2 && calls == 5; });
  for (const Outcome& one : outcomes) EXPECT_THAT(one.error, HasSubstr("stopped after step 5 of 12"));
  EXPECT_EQ(RunDirectory(home.path()).last_checkpoint()->filename(), "stopped-00000005");
}

TEST(JointTrainingTest, CopiesOfTheWeightsAreEqualAgainAfterAnEvaluation) {
  std::vector<NamedTensors> ended(2);
  const TemporaryDirectory home;
  run_together(2, [&](Reducer& reducer) {
    RunDirectory directory(home.path(), /*looks_on=*/!leads(reducer));
    FakeTask task({});
    int64_t steps = 0;
    const auto drift = [&] {
      const at::NoGradGuard no_grad;
      if (++steps == 5 && !leads(reducer)) task.fake()->hidden->weight.add_(0.5);
      return false;
    };
    Trainer(task, joint_options(), directory, {}, drift, reducer).run();
    ended[static_cast<size_t>(reducer.rank())] = task.weights();
  });
  EXPECT_EQ(largest_difference(ended[0], ended[1]), 0);
}

TEST(JointTrainingTest, ProcessesStopEarlyTogether) {
  TrainOptions options = joint_options();
  options.patience = 2;
  const FakeTask::Options task{.losses = {3, 1, 2, 2, 2, 2}};
  const TemporaryDirectory home;
  for (const Outcome& one : train_jointly(2, options, home.path(), task)) {
    EXPECT_EQ(one.error, "no error");
    EXPECT_TRUE(one.result.stopped_early);
    EXPECT_EQ(one.result.steps, 8);
    EXPECT_EQ(one.result.best_loss, 1);
  }
}

TEST(JointTrainingTest, AStopBeforeTheFirstStepEndsAll) {
  TrainOptions options = joint_options();
  options.evaluate_start = true;
  const TemporaryDirectory home;
  for (const Outcome& one :
       train_jointly(2, options, home.path(), {}, [](int64_t rank, int64_t) { return rank == 0; })) {
    EXPECT_EQ(one.error, "stopped before the first step");
  }
}

TEST(JointTrainingTest, TheLastCheckpointsAreAveragedOnce) {
  TrainOptions options = joint_options();
  options.ema_decay = 0;
  options.average_last = 2;
  const TemporaryDirectory home;
  const Outcome alone = train_jointly(1, options, home / "one", {}).front();
  for (const Outcome& one : train_jointly(2, options, home / "two", {})) {
    EXPECT_EQ(one.error, "no error");
    EXPECT_NEAR(one.result.best_loss, alone.result.best_loss, 1e-5);
  }
}

}  // namespace
}  // namespace headshare
