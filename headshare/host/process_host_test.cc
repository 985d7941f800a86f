#include "headshare/host/process_host.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>

#include "headshare/compare/method.h"
#include "headshare/compare/testing.h"
#include "headshare/host/cell_process.h"
#include "headshare/host/machine.h"

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
  void on_step(const StepReport& report) override { steps += report.step > 0 ? 1 : 0; }
  ~GridNotes() override { heard_.push_back(join_text(steps, " steps")); }

 private:
  std::vector<std::string>& heard_;
  int64_t steps = 0;
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
  EXPECT_THAT(heard_, ElementsAre("mha-seed3 1/2", "sha-seed3 2/2", "8 steps"));
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

// Does what ProcessHost starts this program for: `train-cell DIR CELL --threads 1`, or `--version`.
int as_started(const std::vector<std::string>& words) {
  if (words.size() < 3) return 0;
  die_with_parent();
  RuntimeOptions runtime;
  Fields options = fields(runtime);
  for (size_t i = 3; i + 1 < words.size(); i += 2) set_field(options, words[i].substr(2), words[i + 1], words[i]);
  ReportingObserver observer([](const std::string& line) { std::cout << line << std::flush; });
  train_cell(words[1], words[2], start_runtime(runtime), observer, kNeverStop);
  return 0;
}

}  // namespace headshare

int main(int argc, char** argv) {
  constexpr const char* kStarted = "HEADSHARE_HOST_TEST";  // set for processes that tests start, which must not test
  if (std::getenv(kStarted) != nullptr) return headshare::as_started({argv + 1, argv + argc});
  ::setenv(kStarted, "1", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
