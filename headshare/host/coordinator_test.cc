#include "headshare/host/coordinator.h"

#include <gmock/gmock.h>

#include "headshare/compare/testing.h"
#include "headshare/host/cell_worker.h"
#include "headshare/host/exit_later.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A Script is an engine whose cells end as the test says; `work` does what a machine does before.
class Script : public Engine {
 public:
  explicit Script(std::function<EndedCell(size_t cell, int time)> work) : work_(std::move(work)) {}

  size_t room() const override { return 2 - started_.size(); }
  void start(const std::vector<size_t>& cells) override {
    started_.insert(started_.end(), cells.begin(), cells.end());
    for (const size_t cell : cells) begun.push_back(cell);
  }
  std::vector<EndedCell> poll(std::chrono::duration<double>) override {
    std::vector<EndedCell> ended;
    if (started_.empty() && meanwhile) meanwhile();
    for (const size_t cell : std::exchange(started_, {})) ended.push_back(work_(cell, ++times_[cell]));
    return ended;
  }
  std::chrono::duration<double> pause() const override { return std::chrono::duration<double>(0); }
  void stop() override { stopped = true; }

  std::vector<size_t> begun;
  bool stopped = false;
  std::function<void()> meanwhile;  // happens while nothing ends

 private:
  std::function<EndedCell(size_t, int)> work_;
  std::vector<size_t> started_;
  std::map<size_t, int> times_;
};

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() { plan({"mha", "el_lossless"}); }

  void plan(const std::vector<std::string>& schemes) {
    options_ = small_diagnostic(schemes);
    options_.seeds = 2;
    plans_ = plan_cells(options_, *open_experiment(options_));
    RuntimeOptions runtime;
    runtime.threads = 1;
    id_ = write_plan(home_.path(), plans_, runtime, /*goes_on=*/true).id;
  }

  EndedCell work(size_t cell) {
    Observer silent;
    const CellEnd end =
        run_planned_cell({.home = home_.path(), .index = static_cast<int64_t>(cell)}, silent, kNeverStop);
    return {.cell = cell, .code = end.kind == CellEnd::Kind::kDone ? 0 : kExitLater};
  }
  std::unique_ptr<HeldLease> claim(size_t cell) {
    const HeldLease::Claim wanted{.folder = plan_folder(home_.path()),
                                  .cell = plans_[cell].directory(),
                                  .comparison = id_,
                                  .timing = {.beat_seconds = 1000}};
    return HeldLease::claim(wanted, last_lease(wanted.folder, wanted.cell));
  }

  void run(Script& engine, bool stop = false) {
    const fs::path home = home_.path();
    GridObserver silent;
    Gathering gathering(plans_, home, silent, &results_);
    run_open_cells({.home = home,
                    .gathering = gathering,
                    .engine = engine,
                    .observer = silent,
                    .stop_requested = [stop] { return stop; },
                    .timing = timing_});
  }

  const TemporaryDirectory home_;
  ComparisonOptions options_;
  std::vector<CellPlan> plans_;
  std::string id_;
  Results results_;
  LeaseTiming timing_;
};

TEST_F(CoordinatorTest, WhatNeedsTheWeightsOfAnotherComesAfterIt) {
  Script engine([&](size_t cell, int) { return work(cell); });
  run(engine);
  EXPECT_THAT(engine.begun, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(results_.cells.size(), 4u);
}

TEST_F(CoordinatorTest, WhatNeedsTheWeightsOfAFailureFails) {
  Script engine([&](size_t cell, int) { return EndedCell{.cell = cell, .code = 1, .how = "no luck"}; });
  run(engine);
  EXPECT_THAT(engine.begun, ElementsAre(0, 2));
  ASSERT_EQ(results_.failed.size(), 4u);
  EXPECT_EQ(results_.failed[0].reason, "no luck");
  EXPECT_EQ(results_.failed[1].reason, "needs the weights of mha, which was not trained");
}

TEST_F(CoordinatorTest, TheReasonOfAFailureIsThatOfTheLease) {
  plan({"mha"});
  Script engine([&](size_t cell, int) {
    claim(cell)->end(LeaseState::kFailed, "its loss became nan");
    return EndedCell{.cell = cell, .code = 1, .how = "exit code 1", .machine = "s1", .job = "job 7"};
  });
  run(engine);
  ASSERT_EQ(results_.failed.size(), 2u);
  EXPECT_EQ(results_.failed[0].reason, "its loss became nan");
  // Another call tries again: an earlier failure is none of its own.
  Script better([&](size_t cell, int) { return work(cell); });
  run(better);
  EXPECT_TRUE(results_.failed.empty());
}

TEST_F(CoordinatorTest, ACellThatLostItsMachineIsStartedAgainAFewTimes) {
  plan({"mha"});
  Script engine([&](size_t cell, int time) {
    claim(cell);
    if (cell == 0 && time == 2) {
      claim(cell)->end(LeaseState::kStopped);
      return work(cell);
    }
    return EndedCell{.cell = cell, .code = -1, .how = "node failed", .lost = true, .machine = "s1", .job = "job 7"};
  });
  run(engine);
  EXPECT_EQ(results_.cells.size(), 1u);
  ASSERT_EQ(results_.failed.size(), 1u);
  EXPECT_EQ(results_.failed[0].reason, "job 7 on s1: node failed");
  EXPECT_EQ(engine.begun.size(), 2u + 3u);
}

// A cell of ten hours is stopped at each time limit of one hour.
TEST_F(CoordinatorTest, ACellThatComesFurtherIsStartedAgainAsOftenAsItTakes) {
  plan({"mha"});
  Script engine([&](size_t cell, int time) {
    if (cell == 1 || time == 8) return work(cell);
    const std::unique_ptr<HeldLease> lease = claim(cell);
    lease->show({.doing = "training", .step = time});
    lease->end(LeaseState::kStopped);
    return EndedCell{.cell = cell, .code = 130, .how = "stopped", .lost = true, .machine = "s1", .job = "job 7"};
  });
  run(engine);
  EXPECT_EQ(results_.cells.size(), 2u);
  EXPECT_EQ(engine.begun.size(), 9u);
}

TEST_F(CoordinatorTest, AFolderThatIsNotSharedEndsTheComparison) {
  Script engine([&](size_t cell, int) {
    return EndedCell{
        .cell = cell, .code = 72, .how = "exit code 72", .unshared = true, .machine = "s2", .job = "job 12"};
  });
  EXPECT_THAT(error_message([&] { run(engine); }),
              AllOf(HasSubstr("job 12 on s2: exit code 72 and left nothing in " + home_.path().string()),
                    HasSubstr("that s2 shares?")));
}

TEST_F(CoordinatorTest, WhatANetworkShowsLateIsWaitedFor) {
  plan({"mha"});
  Script engine([&](size_t cell, int) {
    return EndedCell{.cell = cell, .code = cell == 0 ? 0 : 1, .how = "", .machine = "s1", .job = "job 7"};
  });
  int looks = 0;
  engine.meanwhile = [&] {
    if (++looks == 3) work(0);
    if (looks == 5) claim(1)->end(LeaseState::kFailed, "its loss became nan");
  };
  run(engine);
  EXPECT_EQ(results_.cells.size(), 1u);
  ASSERT_EQ(results_.failed.size(), 1u);
  EXPECT_EQ(results_.failed[0].reason, "its loss became nan");
  EXPECT_THAT(engine.begun, ElementsAre(0, 1));
}

TEST_F(CoordinatorTest, AJobThatEndedWellAndLeftNothingFailsAfterAWhile) {
  plan({"mha"});
  timing_ = {.beat_seconds = 0.001, .beats_to_wait = 3};
  Script engine(
      [&](size_t cell, int) { return EndedCell{.cell = cell, .code = 0, .how = "", .machine = "s1", .job = "job 7"}; });
  run(engine);
  ASSERT_EQ(results_.failed.size(), 2u);
  EXPECT_EQ(results_.failed[0].reason, "job 7 on s1: its process ended well but left no cell.json");
}

TEST_F(CoordinatorTest, AMachineWhoseProgramDoesNotBeginCostsNoCell) {
  plan({"mha"});
  timing_ = {.beat_seconds = 0.001, .beats_to_wait = 3};
  Script engine([&](size_t cell, int time) {
    if (cell == 0 && time == 2) return work(cell);
    return EndedCell{.cell = cell, .code = 1, .how = "no libtorch.so", .machine = "s1", .job = "job 7"};
  });
  run(engine);
  EXPECT_EQ(results_.cells.size(), 1u);
  ASSERT_EQ(results_.failed.size(), 1u);
  EXPECT_EQ(results_.failed[0].reason, "job 7 on s1: no libtorch.so");
  EXPECT_EQ(engine.begun.size(), 2u + 3u);
}

TEST_F(CoordinatorTest, ACellThatAnotherProcessFinishesIsTakenOver) {
  plan({"mha"});
  std::unique_ptr<HeldLease> other = claim(1);
  Script engine([&](size_t cell, int) {
    if (cell == 0) return work(cell);
    other->end(LeaseState::kStopped);  // the other one, and then its machine does the work
    work(cell);
    return EndedCell{.cell = cell, .code = kExitLater};
  });
  run(engine);
  EXPECT_EQ(results_.cells.size(), 2u);
  EXPECT_THAT(engine.begun, ElementsAre(0, 1));
}

TEST_F(CoordinatorTest, AStopReachesTheEngine) {
  Script engine([&](size_t cell, int) { return EndedCell{.cell = cell, .code = 130}; });
  EXPECT_THROW(run(engine, /*stop=*/true), Interrupted);
  EXPECT_TRUE(engine.stopped);
}

}  // namespace
}  // namespace headshare
