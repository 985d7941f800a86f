#include "headshare/train/step.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "headshare/base/testing.h"
#include "headshare/train/fake_task.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// The threads of a test meet here, each as a process of its own. Sums are formed in the order of ranks.
class Meeting {
 public:
  explicit Meeting(int64_t size) : numbers_(static_cast<size_t>(size)) {}

  std::vector<double> sum(int64_t rank, std::vector<double> numbers) {
    std::unique_lock lock(mutex_);
    numbers_[static_cast<size_t>(rank)] = std::move(numbers);
    const int64_t round = round_;
    if (++arrived_ == size()) {
      total_.assign(numbers_.front().size(), 0);
      for (const std::vector<double>& one : numbers_) {
        for (size_t i = 0; i < total_.size(); ++i) total_[i] += one.at(i);
      }
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      HS_CHECK(all_here_.wait_for(lock, std::chrono::seconds(20), [&] { return round_ != round; }), "rank ", rank,
               " waits for the others");
    }
    return total_;
  }

  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::vector<double>> numbers_;  // of each rank
  std::vector<double> total_;
  int64_t arrived_ = 0;
  int64_t round_ = 0;
};

class ThreadReducer : public Reducer {
 public:
  ThreadReducer(Meeting& meeting, int64_t rank) : meeting_(meeting), rank_(rank) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return meeting_.size(); }

  void sum(const std::vector<Tensor>& tensors) override {
    for (const Tensor& one : tensors) {
      const Tensor wide = one.to(at::kDouble).contiguous();
      std::vector<double> numbers(wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel());
      numbers = meeting_.sum(rank_, std::move(numbers));
      one.copy_(at::tensor(numbers, at::kDouble).view(one.sizes()));
    }
  }

  void sum(std::span<double> numbers) override {
    const std::vector<double> total = meeting_.sum(rank_, {numbers.begin(), numbers.end()});
    std::copy(total.begin(), total.end(), numbers.begin());
  }

 private:
  Meeting& meeting_;
  int64_t rank_;
};

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
  Meeting meeting(static_cast<int64_t>(tasks.size()));
  std::vector<Ended> ended(tasks.size());
  std::vector<std::thread> processes;
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    processes.emplace_back([&, rank] {
      ThreadReducer reducer(meeting, static_cast<int64_t>(rank));
      ended[rank] = run_process(tasks[rank], options, reducer);
    });
  }
  for (std::thread& one : processes) one.join();
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
  Meeting meeting(2);
  std::vector<std::thread> processes;
  std::vector<NamedTensors> before(2), after(2);
  for (int64_t rank = 0; rank < 2; ++rank) {
    processes.emplace_back([&, rank] {
      ThreadReducer reducer(meeting, rank);
      FakeTask task({.rows = {2, 5}});
      task.fake()->hidden->weight.set_requires_grad(false);
      Optimizer optimizer(*task.model(), {.weight_decay = 0.5});
      before[static_cast<size_t>(rank)] = task.weights();
      take_step(task, optimizer, {.accumulation = 2}, 0, 0.1, reducer);
      after[static_cast<size_t>(rank)] = task.weights();
      EXPECT_FALSE(task.fake()->hidden->weight.grad().defined());
    });
  }
  for (std::thread& one : processes) one.join();
  EXPECT_TRUE(before[0].at("hidden.weight").equal(after[0].at("hidden.weight")));  // it does not decay either
  EXPECT_GT(largest_difference(before[1], after[1]), 0.01);
}

}  // namespace
}  // namespace headshare
