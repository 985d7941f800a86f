#include "headshare/train/step.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"
#include "headshare/train/thread_reducer.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// This is what a process of a run ends with.
struct Ended {
  NamedTensors weights;
  std::vector<double> losses;
  std::vector<std::optional<double>> plain_losses;
  std::string error;  // "no error"
};

Ended run_process(FakeTask::Options task_options, const TrainOptions& options, Reducer& reducer) {
  const TemporaryDirectory home;  // the directory of a run has a lock
  RunDirectory run(home.path());
  FakeTask task(std::move(task_options));
  Recorder recorder;
  Trainer trainer(task, options, run, {&recorder}, {}, reducer);
  std::string error = error_message([&] { trainer.run(); });
  return {task.weights(), recorder.losses, recorder.plain_losses, std::move(error)};
}

// Runs a process for each of these tasks.
std::vector<Ended> train_together(const std::vector<FakeTask::Options>& tasks, const TrainOptions& options) {
  std::vector<Ended> ended(tasks.size());
  run_together(static_cast<int64_t>(tasks.size()), [&](Reducer& reducer) {
    const auto rank = static_cast<size_t>(reducer.rank());
    ended[rank] = run_process(tasks[rank], options, reducer);
  });
  return ended;
}

TrainOptions few_steps(int64_t accumulation) {
  TrainOptions options{.steps = 6, .accumulation = accumulation, .save_every = 6, .log_every = 1};
  options.schedule.learning_rate = 0.05;
  options.optimizer.epsilon = 1e-3;  // no rounding of a gradient near 0 becomes a step of full length
  return options;
}

// With one micro-batch the second of three processes has nothing to do; with two micro-batches each process has its
// share.
TEST(StepTest, ProcessesTogetherAreOneThatAccumulates) {
  const FakeTask::Options task{.dropout = 0.3, .rows = {2, 5, 1}, .teacher_loss = 0.1};
  for (const auto& [processes, accumulation] : {std::pair(2, 3), std::pair(3, 1), std::pair(2, 4)}) {
    SCOPED_TRACE(join_text(processes, " processes, ", accumulation, " micro-batches"));
    const TrainOptions options = few_steps(accumulation);
    const Ended alone = run_process(task, options, one_process());
    ASSERT_EQ(alone.losses.size(), 6U) << alone.error;
    const std::vector<Ended> together =
        train_together(std::vector<FakeTask::Options>(static_cast<size_t>(processes), task), options);
    for (const Ended& one : together) {
      ASSERT_EQ(one.error, "no error");
      EXPECT_EQ(largest_difference(one.weights, together.front().weights), 0) << "copies must stay equal";
      EXPECT_LT(largest_difference(one.weights, alone.weights), 1e-5);
      for (size_t i = 0; i < 6; ++i) {
        EXPECT_NEAR(one.losses[i], alone.losses[i], 1e-5 * alone.losses[i]);
        EXPECT_NEAR(one.plain_losses[i].value(), alone.plain_losses[i].value(), 1e-5 * alone.losses[i]);
      }
    }
  }
}

TEST(StepTest, ALossThatIsNotFiniteInOneProcessStopsAllWithTheSameError) {
  for (const auto& [poison, name] :
       {std::pair(FakeTask::Poison::kLoss, "loss"), std::pair(FakeTask::Poison::kGradient, "gradient norm")}) {
    const FakeTask::Options sound{.rows = {2, 5}};
    FakeTask::Options poisoned = sound;
    poisoned.poisoned_draw = 2;
    poisoned.poison = poison;
    const std::vector<Ended> together = train_together({sound, poisoned}, few_steps(2));
    EXPECT_THAT(together[0].error, HasSubstr(join_text("the ", name, " became")));
    EXPECT_THAT(together[0].error, HasSubstr("in step 3"));
    EXPECT_EQ(together[1].error, together[0].error);
    EXPECT_EQ(together[0].losses.size(), 2U);
    EXPECT_EQ(largest_difference(together[0].weights, together[1].weights), 0);
  }
}

TEST(StepTest, WhatNoProcessHasAGradientOfStaysUntouched) {
  std::vector<NamedTensors> before(2), after(2);
  run_together(2, [&](Reducer& reducer) {
    const auto rank = static_cast<size_t>(reducer.rank());
    FakeTask task({.rows = {2, 5}});
    task.fake()->hidden->weight.set_requires_grad(false);
    Optimizer optimizer(*task.model(), {.weight_decay = 0.5}, reducer);
    before[rank] = task.weights();
    take_step(task, optimizer, {.accumulation = 2}, 0, 0.1);
    after[rank] = task.weights();
    EXPECT_FALSE(task.fake()->hidden->weight.grad().defined());
  });
  EXPECT_TRUE(before[0].at("hidden.weight").equal(after[0].at("hidden.weight")));  // it does not decay either
  EXPECT_GT(largest_difference(before[1], after[1]), 0.01);
}

// With three processes one of the five tensors of the model is dealt to each, and the rest to who has least.
TEST(StepTest, ShardedMomentsMoveTheParametersByTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kLamb}) {
    TrainOptions options = few_steps(3);
    options.optimizer.kind = kind;
    options.ema_decay = 0.5;
    const std::vector<FakeTask::Options> tasks(3, {.dropout = 0.3, .rows = {2, 5, 1}});
    const std::vector<Ended> whole = train_together(tasks, options);
    options.optimizer.shard = true;
    const std::vector<Ended> shards = train_together(tasks, options);
    for (size_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(shards[rank].error, "no error");
      EXPECT_EQ(largest_difference(shards[rank].weights, whole[0].weights), 0);
      EXPECT_EQ(shards[rank].losses, whole[0].losses);
    }
  }
}

// Processors add up in different orders; here the processes differ by more than that.
TEST(StepTest, AllTakeTheNormOfProcess0) {
  run_together(2, [](Reducer& reducer) {
    FakeTask task({});
    Optimizer optimizer(*task.model(), {}, reducer);
    const Tensor weight = task.fake()->hidden->weight;
    weight.mutable_grad() = at::full_like(weight, 1.0 + static_cast<double>(reducer.rank()));
    EXPECT_NEAR(optimizer.measure_gradients(/*divisor=*/1, /*most=*/0), std::sqrt(32.0), 1e-6);
  });
}

TEST(StepTest, EachProcessKeepsTheMomentsOfItsShard) {
  std::vector<int64_t> bytes(2);
  FakeTask whole({});
  run_together(2, [&](Reducer& reducer) {
    FakeTask task({});
    const Optimizer optimizer(*task.model(), {.shard = true}, reducer);
    bytes[static_cast<size_t>(reducer.rank())] = optimizer.moment_bytes();
  });
  // 4 x 8 and 8 + 8 + 1 parameters
  EXPECT_EQ(bytes[0], 2 * 4 * 32 + 4);
  EXPECT_EQ(bytes[1], 2 * 4 * 17 + 3 * 4);
  EXPECT_EQ(bytes[0] + bytes[1], Optimizer(*whole.model(), {}).moment_bytes());
}

// Lists the operations of this thread, and the steps of backward passes, while one of these lives.
class Operations {
 public:
  Operations() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(note))) { names.clear(); }
  ~Operations() { at::removeCallback(handle_); }
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  inline static std::vector<std::string> names;

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
    names.emplace_back(function.name());
    return nullptr;
  }

  at::CallbackHandle handle_;
};

// A card whose host waits for a number before it hands out the next work stands still.
TEST(StepTest, NoNumberIsReadBeforeAllMicroBatchesAreUnderWay) {
  FakeTask task({.rows = {2, 5, 1}});
  Optimizer optimizer(*task.model(), {});
  const StepOptions options{.accumulation = 3};
  take_step(task, optimizer, options, 0, 0.01);
  std::vector<std::string> names;
  {
    const Operations recorded;
    take_step(task, optimizer, options, 1, 0.01);
    names = Operations::names;
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), "TanhBackward0"), 3);
  const auto last_pass = std::find(names.rbegin(), names.rend(), "TanhBackward0").base();
  EXPECT_EQ(std::count(names.begin(), last_pass, "aten::_local_scalar_dense"), 0);
  // The losses and the norm of the gradient come then, and what AdamW reads on the CPU.
  EXPECT_GE(std::count(last_pass, names.end(), "aten::_local_scalar_dense"), 4);
}

}  // namespace
}  // namespace headshare
