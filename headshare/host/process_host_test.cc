#include "headshare/host/process_host.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>

#include "headshare/base/files/output_mark.h"
#include "headshare/compare/method.h"
#include "headshare/compare/testing.h"
#include "headshare/host/cell_worker.h"
#include "headshare/host/exit_later.h"
#include "headshare/host/machine.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// GridNotes note what they hear of a grid.
class GridNotes : public GridObserver {
 public:
  explicit GridNotes(std::vector<std::string>* heard) : heard_(*heard) {}

  void on_taken_over(size_t finished, size_t count) override {
    heard_.push_back(join_text(finished, " of ", count, " before"));
  }
  void on_cell(const CellPlan& plan, int64_t number, int64_t count) override {
    heard_.push_back(join_text(plan.directory(), " ", number, "/", count));
  }
  void on_failure(const CellPlan& plan, const std::string& reason) override {
    heard_.push_back(plan.directory() + " failed: " + reason);
  }

 private:
  std::vector<std::string>& heard_;
};

class NotingHost : public ProcessHost {
 public:
  NotingHost(const CompareCommand& command, std::vector<std::string>* heard, bool stop = false)
      : ProcessHost({.program = "/proc/self/exe", .stop_requested = [stop] { return stop; }}, command), heard_(heard) {}

 protected:
  std::unique_ptr<GridObserver> observer() override { return std::make_unique<GridNotes>(heard_); }

 private:
  std::vector<std::string>* heard_;
};

class ProcessHostTest : public testing::Test {
 protected:
  ProcessHostTest() {
    command_.out = home_.path().string();
    command_.comparison = small_diagnostic({"mha", "sha"});
    command_.runtime.threads = 1;
  }

  Results run(bool stop = false) {
    NotingHost host(command_, &heard_, stop);
    ComparisonCall call = command_.call("a test");
    return compare(call, host);
  }

  TemporaryDirectory home_;
  CompareCommand command_;
  std::vector<std::string> heard_;
};

TEST_F(ProcessHostTest, CellsRunInProcessesAndTheirReportsAreThere) {
  const Results results = run();
  ASSERT_EQ(results.cells.size(), 2u);
  EXPECT_TRUE(results.failed.empty());
  EXPECT_THAT(heard_, ElementsAre("mha-seed3 1/2", "sha-seed3 2/2"));
  EXPECT_EQ(results.environment.at("torch"), describe_machine().torch);
  for (const char* name : {"results.json", "report.html", "resolved.yaml", "cells/sha-seed3/cell.json"}) {
    EXPECT_TRUE(fs::exists(home_.path() / name)) << name;
  }
}

TEST_F(ProcessHostTest, AnotherCallGoesOnWithTheOptionsOfTheFirst) {
  command_.comparison.train.steps = 5;
  run();
  heard_.clear();
  NotingHost other(CompareCommand(), &heard_);
  ComparisonOptions begun = other.begun(home_.path()).options;
  EXPECT_EQ(to_json(fields(begun)), to_json(fields(command_.comparison)));
  command_.resume = command_.adds = true;
  command_.comparison = begun;
  command_.comparison.seeds = 2;
  EXPECT_EQ(run().cells.size(), 4u);
  EXPECT_EQ(heard_.front(), "2 of 4 before");
}

// Returns results as text, without what the clock and the machine say.
std::string found_in(Results results) {
  for (Cell& cell : results.cells) {
    cell.training_seconds = cell.training_tokens_per_second = cell.decoding_tokens_per_second = 0;
    cell.peak_memory_bytes = cell.peak_device_bytes = 0;
    cell.waited = {};
    cell.machine = {};
    for (CurvePoint& point : cell.curve) point.seconds = 0;
  }
  results.environment = {};
  return to_text(to_json(results));
}

TEST_F(ProcessHostTest, SeveralCellsAtATimeFindTheSame) {
  command_.comparison.schemes = {"mha", "sha", "el_lossless"};
  const Results one = run();
  command_.workers = "local:2";
  command_.overwrite = true;
  heard_.clear();
  const Results two = run();
  EXPECT_EQ(found_in(two), found_in(one));
  EXPECT_EQ(two.cells.size(), 3u);
}

TEST_F(ProcessHostTest, CellsThatAreDealtToDevicesFindTheSame) {
  const Results one = run();
  command_.devices = {"cpu", "cpu"};
  command_.overwrite = true;
  EXPECT_EQ(command_.engine(), "local:2");
  EXPECT_EQ(found_in(run()), found_in(one));
  command_.overwrite = false;
  command_.resume = true;
  EXPECT_EQ(found_in(run()), found_in(one));
}

TEST_F(ProcessHostTest, DevicesThatCannotBeUsedAreRefusedBeforeAnythingIsTrained) {
  const auto refusal = [&](const std::vector<std::string>& devices) {
    command_.devices = devices;
    return error_message([&] { run(); });
  };
  EXPECT_THAT(refusal({"cpu", "cuda:999"}), HasSubstr("--device cuda:999: "));
  EXPECT_THAT(refusal({"auto"}), HasSubstr("name each device"));
  EXPECT_THAT(refusal({"gpu0"}), HasSubstr("--devices must be one of"));
  command_.runtime.device = {.kind = DeviceChoice::Kind::kCpu};
  EXPECT_THAT(refusal({"cpu", "cpu"}), HasSubstr("leave one of them out"));
  command_.runtime.device = {};
  command_.workers = "slurm";
  EXPECT_THAT(refusal({"cpu"}), HasSubstr("leave --devices out"));
  EXPECT_FALSE(fs::exists(home_.path() / "cells"));
}

TEST_F(ProcessHostTest, CellsOfAPlanRunAnywhereAndAreGathered) {
  const Results whole = run();
  command_.overwrite = true;
  command_.plan = command_.out;
  Planned planned;
  try {
    run();
  } catch (const Planned& thrown) {
    planned = thrown;
  }
  EXPECT_EQ(planned.cells, 2u);
  EXPECT_THAT(planned.unfinished, ElementsAre(0, 1));
  Observer silent;
  for (const size_t cell : planned.unfinished) {
    run_planned_cell({.home = home_.path(), .index = static_cast<int64_t>(cell), .plan_id = planned.id}, silent,
                     kNeverStop);
  }
  command_.overwrite = false;
  command_.resume = true;
  EXPECT_EQ(found_in(run()), found_in(whole));  // nothing is left to plan
  EXPECT_THAT(heard_, testing::Contains("2 of 2 before"));
}

TEST_F(ProcessHostTest, AnotherEngineGoesOnWithTheThreadsOfThePlan) {
  run();
  const fs::path file = plan_folder(home_.path()) / "plan.json";
  nlohmann::json plan = nlohmann::json::parse(read_file(file));
  plan["runtime"]["threads"] = 3;  // of another machine
  write_file(file, plan.dump());
  command_.runtime.threads.reset();
  command_.resume = true;
  command_.workers = "local:2";
  run();
  EXPECT_EQ(read_plan(home_.path()).runtime.threads, 3);
  EXPECT_EQ(threads_in_use(), 3);
}

TEST_F(ProcessHostTest, AFolderThatTheMarkDoesNotNameIsNotOurs) {
  run();
  command_.resume = true;
  write_file(plan_folder(home_.path()) / "mine.json", "{}");
  run();
  EXPECT_TRUE(fs::exists(plan_folder(home_.path()) / "mine.json"));
  const fs::path file = home_.path() / kMarkFile;
  nlohmann::json mark = nlohmann::json::parse(read_file(file));
  mark["names"] = {"resolved.yaml", "cells", "results.json"};  // of a program that had no plans
  write_file(file, mark.dump());
  EXPECT_THAT(error_message([&] { run(); }), HasSubstr("/plan exists and does not belong to"));
}

TEST_F(ProcessHostTest, AFailedCellIsAReasonAndOthersGoOn) {
  command_.comparison.schemes = {"mha"};
  command_.comparison.sweep = {"learning-rate=1e30", "1e-3"};
  command_.comparison.train.max_gradient_norm = 0;
  command_.comparison.train.steps = 30;
  const Results results = run();
  ASSERT_EQ(results.failed.size(), 1u);
  EXPECT_THAT(results.failed[0].reason, HasSubstr("learning-rate"));
  EXPECT_EQ(results.cells.size(), 1u);
}

TEST_F(ProcessHostTest, UnknownEnginesAreRefused) {
  command_.workers = "locl:2";
  EXPECT_THAT(error_message([&] { command_.call(""); }), HasSubstr("did you mean 'local'?"));
  command_.workers = "local:none";
  EXPECT_THAT(error_message([&] { command_.call(""); }), HasSubstr("local:none"));
}

TEST_F(ProcessHostTest, AStopBeforeTheFirstCellLeavesNothing) {
  EXPECT_THROW(run(/*stop=*/true), Interrupted);
  EXPECT_FALSE(fs::exists(home_.path() / "resolved.yaml"));
}

TEST_F(ProcessHostTest, AProgramIsNeeded) {
  EXPECT_THAT(error_message([&] { ProcessHost({}, command_); }), HasSubstr("HostOptions::program"));
}

// resolved.yaml gives `headshare compare` the options of a comparison again.
TEST(CompareCommandTest, EveryOptionStandsInOneGroup) {
  CompareCommand command;
  std::set<std::string> names;
  for (const OptionGroup& group : command.groups()) {
    for (const Field& one : group.fields) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  }
  for (const Field& one : fields(command.comparison)) EXPECT_TRUE(names.contains(one.name)) << one.name;
  EXPECT_TRUE(names.contains("out") && names.contains("threads"));
}

TEST(MachineTest, IsDescribed) {
  const nlohmann::ordered_json machine = to_json(describe_machine());
  EXPECT_GT(machine.at("cores"), 0);
  EXPECT_GT(machine.at("memory_bytes"), 1 << 20);
  EXPECT_FALSE(machine.at("attention_backends").empty());
  EXPECT_EQ(machine.at("instructions"), to_json(instruction_sets()).at("libtorch"));
}

}  // namespace

// Does what engines start this program for: `cell DIR INDEX ...`, or `--version`.
int as_started(const std::vector<std::string>& words) {
  if (words.size() < 3) return 0;
  die_with_parent();
  Observer silent;
  try {
    const CellEnd end = run_planned_cell({.home = words[1], .index = std::stoll(words[2])}, silent, kNeverStop);
    std::cerr << "note: " << end.sentence << "\n";
    return end.kind == CellEnd::Kind::kDone ? 0 : kExitLater;
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace headshare

int main(int argc, char** argv) {
  constexpr const char* kStarted = "HEADSHARE_HOST_TEST";  // set for processes that tests start, which must not test
  if (std::getenv(kStarted) != nullptr) return headshare::as_started({argv + 1, argv + argc});
  ::setenv(kStarted, "1", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
