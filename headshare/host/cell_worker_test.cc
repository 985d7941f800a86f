#include "headshare/host/cell_worker.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "headshare/base/json/json_input.h"
#include "headshare/compare/testing.h"
#include "headshare/host/cell_attempt.h"
#include "headshare/host/child_process.h"
#include "headshare/host/exit_later.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = CellEnd::Kind;

constexpr LeaseTiming kFast{.beat_seconds = 0.01, .beats_to_wait = 30};
constexpr LeaseTiming kPatient{.beat_seconds = 0.01, .beats_to_wait = 100000};  // also on a busy machine

// A Hook does something at a step.
class Hook : public Observer {
 public:
  explicit Hook(std::function<void(int64_t)> at_step) : at_step_(std::move(at_step)) {}
  void on_step(const StepReport& report) override { at_step_(report.step); }

 private:
  std::function<void(int64_t)> at_step_;
};

// Returns what a cell found, without what the clock and the machine say.
nlohmann::json found_by(Cell cell) {
  cell.training_seconds = cell.training_tokens_per_second = cell.decoding_tokens_per_second = 0;
  cell.peak_memory_bytes = cell.peak_device_bytes = 0;
  cell.waited = {};
  cell.machine = {};
  for (CurvePoint& point : cell.curve) point.seconds = 0;
  return to_json(cell);
}

class CellWorkerTest : public testing::Test {
 protected:
  CellWorkerTest() {
    ::setenv("HEADSHARE_BEAT", "0.01", /*overwrite=*/1);  // of processes that tests start
    options_.train.steps = 40;
    options_.train.evaluate_every = 4;
  }
  ~CellWorkerTest() override { ::unsetenv("HEADSHARE_BEAT"); }

  // Plans the comparison in `home`.
  PlanFile plan(const fs::path& home) {
    const auto experiment = open_experiment(options_);
    plans_ = plan_cells(options_, *experiment);
    RuntimeOptions runtime;
    runtime.threads = 1;
    return write_plan(home, plans_, runtime, /*goes_on=*/true);
  }

  CellCall call(int64_t index = 0) const { return {.home = home_.path(), .index = index, .timing = kFast}; }
  CellCall patient() const { return {.home = home_.path(), .timing = kPatient}; }
  CellEnd run(const CellCall& call) {
    Observer silent;
    return run_planned_cell(call, silent, kNeverStop);
  }
  std::string refusal(const CellCall& call) {
    return error_message([&] { run(call); });
  }
  Lease lease(size_t cell = 0) const { return last_lease(plan_folder(home_.path()), plans_[cell].directory()).value(); }
  fs::path newest() const { return newest_attempt(home_.path(), plans_[0].key, read_plan(home_.path()).id); }
  Cell cell(size_t index = 0) const { return finished_cell(home_.path(), plans_[index].key).value(); }

  // Starts this program as `headshare cell`; it waits for the first checkpoint.
  std::unique_ptr<ChildProcess> started() {
    auto child =
        std::make_unique<ChildProcess>("/proc/self/exe", std::vector<std::string>{"cell", home_.path().string(), "0"},
                                       [this](const std::string& note) { said_.push_back(note); });
    while (newest().empty() || !fs::exists(newest() / "checkpoints" / "last")) {
      if (child->look()) ADD_FAILURE() << "it ended: " << child->wait().how;
    }
    return child;
  }

  // Stops a process and waits until it has: it may be about to write a beat.
  static void stop(const ChildProcess& child) {
    ::kill(child.id(), SIGSTOP);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.id()), &info, WSTOPPED | WNOWAIT), 0);
  }

  // Returns what one worker finds that nobody disturbs.
  nlohmann::json undisturbed() {
    const TemporaryDirectory other;
    plan(other.path());
    Observer silent;
    run_planned_cell({.home = other.path(), .index = 0, .timing = kFast}, silent, kNeverStop);
    return found_by(*finished_cell(other.path(), plans_[0].key));
  }

  void edit(const std::string& file, const std::function<void(nlohmann::json&)>& change) {
    const fs::path path = plan_folder(home_.path()) / file;
    nlohmann::json object = nlohmann::json::parse(read_file(path));
    change(object);
    write_file(path, object.dump());
  }

  const TemporaryDirectory home_;
  ComparisonOptions options_ = small_diagnostic({"mha"});
  std::vector<CellPlan> plans_;
  std::vector<std::string> said_;
};

TEST_F(CellWorkerTest, ACellIsDoneOnce) {
  plan(home_.path());
  EXPECT_EQ(run(call()).kind, Kind::kDone);
  ASSERT_TRUE(cell().machine);
  EXPECT_EQ(cell().machine->threads, 1);
  EXPECT_EQ(cell().machine->device, "cpu");
  EXPECT_EQ(lease().state, LeaseState::kFinished);
  EXPECT_TRUE(newest().empty());
  const int64_t number = lease().number;
  EXPECT_EQ(run(call()).kind, Kind::kDone);
  EXPECT_EQ(lease().number, number);
}

TEST_F(CellWorkerTest, AnotherOneIsRefusedWhileTheOwnerBeats) {
  plan(home_.path());
  CellEnd other;
  Hook hook([&](int64_t step) {
    if (step == 1) other = run(patient());
  });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_EQ(other.kind, Kind::kLater);
  EXPECT_THAT(other.sentence, AllOf(HasSubstr("mha-seed3 is being worked on by host "), HasSubstr("process ")));
}

TEST_F(CellWorkerTest, AKilledWorkerIsGoneOnWithToTheSameResult) {
  plan(home_.path());
  const auto child = started();
  ::kill(child->id(), SIGKILL);
  EXPECT_EQ(child->wait().code, -1);
  int64_t first = 0;
  Hook hook([&](int64_t step) { first = first == 0 ? step : first; });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_GT(first, 1);  // from a checkpoint
  EXPECT_EQ(found_by(cell()), undisturbed());
}

// The worker is stopped past its lease and wakes up while another one works: it finds that it was overtaken and
// publishes nothing, although there is no result yet.
TEST_F(CellWorkerTest, AStoppedWorkerThatWakesUpPublishesNothing) {
  plan(home_.path());
  const auto child = started();
  stop(*child);
  bool published = true;
  Hook hook([&](int64_t) {
    if (!std::exchange(published, false)) return;
    ::kill(child->id(), SIGCONT);
    EXPECT_EQ(child->wait().code, kExitLater) << child->wait().how;
    published = is_finished(home_.path(), plans_[0].key);
    EXPECT_FALSE(published);
  });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_THAT(said_, testing::Contains(HasSubstr("was taken over by host ")));
  EXPECT_EQ(found_by(cell()), undisturbed());
}

TEST_F(CellWorkerTest, AStoppedWorkerThatWakesUpAfterAnotherFindsTheCellDone) {
  plan(home_.path());
  const auto child = started();
  stop(*child);
  CellCall other = call();
  other.take_over = true;  // an engine says that the first is lost
  EXPECT_EQ(run(other).kind, Kind::kDone);
  const std::string before = read_file(cell_home(home_.path(), plans_[0].key) / "cell.json");
  ::kill(child->id(), SIGCONT);
  EXPECT_EQ(child->wait().code, 0) << child->wait().how;
  EXPECT_THAT(said_, testing::Contains(HasSubstr("was finished by another process")));
  EXPECT_EQ(read_file(cell_home(home_.path(), plans_[0].key) / "cell.json"), before);
  EXPECT_TRUE(newest().empty());
}

// A new owner that has claimed the cell starts its device first, for seconds.
TEST_F(CellWorkerTest, AnOvertakenWorkerLeavesItsCheckpointsToAnOwnerThatHasNotBegun) {
  const PlanFile planned = plan(home_.path());
  std::unique_ptr<HeldLease> next;
  Hook claim([&](int64_t step) {
    if (step != 9) return;
    next = HeldLease::claim(
        {.folder = plan_folder(home_.path()), .cell = planned.cells[0], .comparison = planned.id, .timing = kFast},
        lease());
  });
  EXPECT_EQ(run_planned_cell(call(), claim, kNeverStop).kind, Kind::kLater);
  ASSERT_TRUE(next && next->end(LeaseState::kStopped));
  int64_t first = 0;
  Hook hook([&](int64_t step) { first = first == 0 ? step : first; });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_GT(first, 1);  // from a checkpoint
  EXPECT_EQ(found_by(cell()), undisturbed());
}

TEST_F(CellWorkerTest, AStopGivesTheLeaseBack) {
  plan(home_.path());
  bool asked = false;
  Hook hook([&](int64_t step) { asked = step == 7; });
  EXPECT_THROW(run_planned_cell(call(), hook, [&] { return asked; }), Interrupted);
  EXPECT_EQ(lease().state, LeaseState::kStopped);
  EXPECT_EQ(run(call()).kind, Kind::kDone);
  EXPECT_EQ(found_by(cell()), undisturbed());
}

TEST_F(CellWorkerTest, AFailureIsNotedAndTriedAgain) {
  options_.train.schedule.learning_rate = 1e30;
  options_.train.max_gradient_norm = 0;
  plan(home_.path());
  const std::string reason = refusal(call());
  EXPECT_THAT(reason, HasSubstr("learning-rate"));
  EXPECT_EQ(lease().state, LeaseState::kFailed);
  EXPECT_EQ(lease().reason, reason);
  EXPECT_EQ(refusal(call()), reason);
  EXPECT_FALSE(is_finished(home_.path(), plans_[0].key));
}

TEST_F(CellWorkerTest, AFullDiskIsNamedAndLosesNothing) {
  plan(home_.path());
  Hook full([&](int64_t step) {
    if (step == 9) throw Error(join_text("cannot write a checkpoint: ", std::strerror(ENOSPC)));
  });
  EXPECT_THAT(error_message([&] { run_planned_cell(call(), full, kNeverStop); }),
              AllOf(HasSubstr("cannot write a checkpoint"), HasSubstr("The last checkpoint is kept: make room there")));
  int64_t first = 0;
  Hook hook([&](int64_t step) { first = first == 0 ? step : first; });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_GT(first, 1);  // from that checkpoint
  EXPECT_EQ(found_by(cell()), undisturbed());
}

TEST_F(CellWorkerTest, OnlyItsPublicationMayBeMissing) {
  plan(home_.path());
  run(call());
  // Its process was killed between cell.json and the rename.
  const std::string id = read_plan(home_.path()).id.substr(0, 8);
  fs::rename(cell_home(home_.path(), plans_[0].key), home_.path() / "cells" / (".mha-seed3.attempt-" + id + "-1"));
  Hook hook([](int64_t step) { ADD_FAILURE() << "step " << step << " again"; });
  EXPECT_EQ(run_planned_cell(call(), hook, kNeverStop).kind, Kind::kDone);
  EXPECT_EQ(found_by(cell()), undisturbed());
}

TEST_F(CellWorkerTest, WeightsOfAnotherCellAreWaitedFor) {
  options_.schemes = {"mha", "el_lossless"};
  plan(home_.path());
  const CellEnd early = run(call(1));
  EXPECT_EQ(early.kind, Kind::kLater);
  EXPECT_THAT(early.sentence, HasSubstr("needs the weights of mha-seed3, which is not finished"));
  run(call(0));
  EXPECT_EQ(run(call(1)).kind, Kind::kDone);
  EXPECT_EQ(cell(1).weights_of, "mha");
}

TEST_F(CellWorkerTest, AWorkerCanWait) {
  options_.schemes = {"mha", "el_lossless"};
  plan(home_.path());
  CellCall second = patient();
  second.index = 1;
  second.wait = true;
  CellEnd end;
  std::thread other([&] { end = run(second); });
  run(call(0));
  other.join();
  EXPECT_EQ(end.kind, Kind::kDone);
  EXPECT_EQ(cell(1).weights_of, "mha");
}

TEST_F(CellWorkerTest, WeightsThatNobodyWorksOnAreNotWaitedForForEver) {
  options_.schemes = {"mha", "el_lossless"};
  const PlanFile planned = plan(home_.path());
  CellCall second = call(1);
  second.wait = true;
  second.timing = {.beat_seconds = 0.001, .beats_to_wait = 10};
  const auto expect_later = [&] {
    const CellEnd end = run(second);
    EXPECT_EQ(end.kind, Kind::kLater);
    EXPECT_THAT(end.sentence, HasSubstr("and nobody works on it; run mha-seed3 first"));
  };
  expect_later();
  HeldLease::claim({.folder = plan_folder(home_.path()), .cell = "mha-seed3", .comparison = planned.id}, std::nullopt);
  edit("mha-seed3.lease-1", [](nlohmann::json& lease) { lease["owner"]["machine"] = "of a killed worker"; });
  expect_later();
}

TEST_F(CellWorkerTest, WeightsOfACellThatFailedAreNotWaitedFor) {
  options_.schemes = {"mha", "el_lossless"};
  options_.train.schedule.learning_rate = 1e30;
  options_.train.max_gradient_norm = 0;
  plan(home_.path());
  refusal(call(0));
  CellCall second = call(1);
  second.wait = true;
  EXPECT_THAT(refusal(second), AllOf(HasSubstr("needs the weights of mha-seed3"), HasSubstr("learning-rate")));
}

TEST_F(CellWorkerTest, WrongCallsAreRefused) {
  EXPECT_THAT(refusal(call()), AllOf(HasSubstr("holds no plan"), HasSubstr("--plan DIR")));
  const PlanFile planned = plan(home_.path());
  EXPECT_THAT(refusal(call(1)),
              HasSubstr("there is no cell 1: the plan in " + home_.path().string() + " has the cells 0 to 0"));
  CellCall other = call();
  other.plan_id = "another";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("holds the plan " + planned.id), HasSubstr("plan another")));
  write_file(plan_folder(home_.path()) / "plan.json", "{");
  EXPECT_THAT(refusal(call()), AllOf(HasSubstr("plan.json"), HasSubstr("it is damaged")));
}

TEST_F(CellWorkerTest, AnotherProgramOrOtherDataAreRefusedBeforeAnythingIsTrained) {
  plan(home_.path());
  edit("plan.json", [](nlohmann::json& plan) { plan["program"]["commit"] = "abc"; });
  EXPECT_THAT(refusal(call()), AllOf(HasSubstr("commit abc"), HasSubstr(this_program().commit)));
  EXPECT_FALSE(last_lease(plan_folder(home_.path()), "mha-seed3"));  // another machine is not kept from the cell
  write_file(plan_folder(home_.path()) / "mha-seed3.json", "of another version");
  EXPECT_THAT(refusal(call()), HasSubstr("commit abc"));
  plan(home_.path());
  edit("mha-seed3.json", [](nlohmann::json& plan) { plan["data"][""] = "fingerprint"; });
  EXPECT_THAT(refusal(call()), AllOf(HasSubstr("its fingerprint is"), HasSubstr("planned was fingerprint")));
  EXPECT_EQ(lease().state, LeaseState::kStopped);  // the cell has not failed
  EXPECT_THAT(lease().reason, HasSubstr("its fingerprint is"));
  plan(home_.path());
  EXPECT_EQ(run(call()).kind, Kind::kDone);
}

// JSON holds UTF-8 alone: another name would lead `cell` into another directory.
TEST_F(CellWorkerTest, APlanIsNotWrittenInADirectoryThatItCannotName) {
  const fs::path before = fs::current_path();
  const fs::path odd = home_ / "caf\xE9";
  fs::create_directory(odd);
  fs::current_path(odd);
  const std::string error = error_message([&] { plan(home_ / "new"); });
  fs::current_path(before);
  EXPECT_THAT(error, HasSubstr("is not UTF-8, and "));
  EXPECT_FALSE(fs::exists(home_ / "new"));
}

TEST_F(CellWorkerTest, LeasesOfAComparisonThatWasOverwrittenAreNobodys) {
  const PlanFile first = plan(home_.path());
  const auto held = HeldLease::claim(
      {.folder = plan_folder(home_.path()), .cell = "mha-seed3", .comparison = first.id, .timing = kFast},
      std::nullopt);
  EXPECT_EQ(run(patient()).kind, Kind::kLater);
  RuntimeOptions runtime;
  runtime.threads = 1;
  EXPECT_EQ(write_plan(home_.path(), plans_, runtime, /*goes_on=*/true).id, first.id);
  EXPECT_NE(write_plan(home_.path(), plans_, runtime, /*goes_on=*/false).id, first.id);
  EXPECT_EQ(run(call()).kind, Kind::kDone);
  EXPECT_FALSE(held->renew());
}

// The comparison is begun anew, with another learning rate, while a worker of the old one is in the middle.
TEST_F(CellWorkerTest, AWorkerOfAComparisonThatWasOverwrittenPublishesNothing) {
  plan(home_.path());
  CellCall deaf = call();
  deaf.timing = {.beat_seconds = 1000};  // it learns of it only before it publishes
  Hook hook([&](int64_t step) {
    if (step != 9) return;
    discard(plan_folder(home_.path()) / "plan.json");
    discard(home_.path() / "cells");
    options_.train.schedule.learning_rate *= 2;
    plan(home_.path());
  });
  EXPECT_EQ(run_planned_cell(deaf, hook, kNeverStop).kind, Kind::kLater);
  EXPECT_FALSE(is_finished(home_.path(), plans_[0].key));
  int64_t first = 0;
  Hook begins([&](int64_t step) { first = first == 0 ? step : first; });
  EXPECT_EQ(run_planned_cell(call(), begins, kNeverStop).kind, Kind::kDone);
  EXPECT_EQ(first, 1);  // not from a checkpoint of the old one
}

TEST_F(CellWorkerTest, AWorkerOfAComparisonThatWasOverwrittenNoticesAtABeat) {
  options_.train.steps = 100000;
  plan(home_.path());
  Hook hook([&](int64_t step) {
    if (step == 1) fs::remove(plan_folder(home_.path()) / "plan.json");
  });
  const CellEnd end = run_planned_cell(call(), hook, kNeverStop);
  EXPECT_EQ(end.kind, Kind::kLater);
  EXPECT_THAT(end.sentence, HasSubstr("was begun anew"));
}

}  // namespace
}  // namespace headshare
