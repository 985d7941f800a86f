#include "headshare/train/run_directory.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

auto content(const std::string& text) {
  return [text](const fs::path& fresh) { write_file(fresh / "x", text); };
}

TEST(RunDirectoryTest, PublishesUnderANameAndALink) {
  const TemporaryDirectory home;
  RunDirectory run(home / "a" / "b");
  EXPECT_FALSE(run.has_run());
  EXPECT_FALSE(run.last_checkpoint());
  EXPECT_TRUE(run.step_checkpoints().empty());
  fs::path inside;
  const fs::path made = run.publish("step", 20, 2, "last", [&](const fs::path& fresh) {
    inside = fresh;
    write_file(fresh / "x", "20");
    EXPECT_FALSE(run.last_checkpoint());
    EXPECT_TRUE(run.step_checkpoints().empty());
  });
  EXPECT_EQ(made.filename(), "step-00000020");
  EXPECT_NE(inside, made);
  EXPECT_EQ(read_file(*run.last_checkpoint() / "x"), "20");
  EXPECT_TRUE(run.has_run());
  run.publish("best", 10, 1, "best", content("best"));
  EXPECT_EQ(read_file(*run.best_model() / "x"), "best");
  EXPECT_EQ(run.last_checkpoint(), made);
  EXPECT_EQ(fs::read_symlink(run.checkpoints() / "last"), "step-00000020");  // moves with its folder
  EXPECT_THAT(names_in(run.checkpoints()), UnorderedElementsAre("last", "best", "step-00000020", "best-00000010"));
}

TEST(RunDirectoryTest, KeepsTheNewestOfEachKind) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  run.publish("best", 1, 1, "best", content("1"));
  for (const int64_t step : {1, 2, 9, 10, 100}) run.publish("step", step, 2, "last", content(std::to_string(step)));
  EXPECT_THAT(run.step_checkpoints(),
              ElementsAre(run.checkpoints() / "step-00000010", run.checkpoints() / "step-00000100"));
  run.publish("stopped", 105, 1, "last", content("105"));
  EXPECT_EQ(run.step_checkpoints().size(), 2u);
  EXPECT_EQ(read_file(*run.last_checkpoint() / "x"), "105");
  run.publish("step", 110, 2, "last", content("110"));
  run.drop("stopped");
  EXPECT_EQ(read_file(*run.best_model() / "x"), "1");
  EXPECT_THAT(names_in(run.checkpoints()),
              UnorderedElementsAre("last", "best", "best-00000001", "step-00000100", "step-00000110"));
}

TEST(RunDirectoryTest, WritesAStepAgain) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  run.publish("step", 5, 1, "last", content("old"));
  run.publish("step", 5, 1, "last", [&](const fs::path& fresh) {
    write_file(fresh / "y", "new");
    EXPECT_EQ(read_file(*run.last_checkpoint() / "x"), "old");
  });
  EXPECT_THAT(names_in(*run.last_checkpoint()), ElementsAre("y"));
  EXPECT_THAT(names_in(run.checkpoints()), UnorderedElementsAre("last", "step-00000005"));
  // A killed run had reached a later step: the checkpoint that is written now stays all the same.
  run.publish("step", 3, 1, "last", content("3"));
  EXPECT_EQ(read_file(*run.last_checkpoint() / "x"), "3");
}

TEST(RunDirectoryTest, AFailureWhileWritingLeavesWhatWasThere) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  run.publish("step", 1, 2, "last", content("1"));
  EXPECT_EQ(error_message([&] {
              run.publish("step", 2, 2, "last", [](const fs::path& fresh) {
                write_file(fresh / "x", "2");
                throw Error("the disk is full");
              });
            }),
            "the disk is full");
  EXPECT_EQ(read_file(*run.last_checkpoint() / "x"), "1");
  EXPECT_THAT(names_in(run.checkpoints()), UnorderedElementsAre("last", "step-00000001"));
}

TEST(RunDirectoryTest, WhatAKilledProcessLeftIsIgnoredAndRemoved) {
  const TemporaryDirectory home;
  std::optional<RunDirectory> run(std::in_place, home.path());
  run->publish("step", 1, 2, "last", content("1"));
  const fs::path folder = run->checkpoints();
  // The process was killed between filling and renaming, between renaming and linking, and while the link was replaced.
  make_directories(folder / "step-00000003.partial-77");
  write_file(folder / "step-00000003.partial-77" / "x", "half");
  make_directories(folder / "step-00000002");
  fs::create_directory_symlink("step-00000002", folder / "last.partial-77");
  write_file(home / "metrics.jsonl.partial-77", "half");
  EXPECT_EQ(run->step_checkpoints().size(), 2u);
  EXPECT_EQ(read_file(*run->last_checkpoint() / "x"), "1");
  run.reset();
  run.emplace(home.path());
  EXPECT_TRUE(fs::exists(home / "metrics.jsonl.partial-77")) << "the directory may be somebody else's";
  for (const fs::path& one : {home.path(), folder}) remove_partials(one);
  EXPECT_EQ(read_file(*run->last_checkpoint() / "x"), "1");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("last", "step-00000001", "step-00000002"));
  EXPECT_THAT(names_in(home.path()), UnorderedElementsAre(".lock", "checkpoints"));
  run->publish("step", 2, 2, "last", content("2"));
  EXPECT_EQ(read_file(*run->last_checkpoint() / "x"), "2");
}

TEST(RunDirectoryTest, ALinkToNothingIsNoCheckpoint) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  const fs::path made = run.publish("step", 1, 2, "last", content("1"));
  fs::remove_all(made);
  EXPECT_FALSE(run.last_checkpoint());
}

TEST(RunDirectoryTest, WhatIsDroppedLeavesNoLinkToNothing) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  run.publish("best", 1, 1, "best", content("1"));
  run.publish("step", 2, 2, "last", content("2"));
  run.drop("stopped");
  EXPECT_THAT(names_in(run.checkpoints()), UnorderedElementsAre("last", "best", "best-00000001", "step-00000002"));
  run.drop("step");
  EXPECT_THAT(names_in(run.checkpoints()), UnorderedElementsAre("best", "best-00000001"));
  run.drop("best");
  EXPECT_TRUE(fs::is_empty(run.checkpoints()));
}

TEST(RunDirectoryTest, OneProcessAtATime) {
  const TemporaryDirectory home;
  {
    const RunDirectory run(home.path());
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string text = error_message([&] { const RunDirectory second(home.path()); });
      ::_exit(text.find("in use by another") == std::string::npos || text.find(home.path()) == std::string::npos);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const RunDirectory free_again(home.path());
}

TEST(RunDirectoryTest, AMistakeInTheCallLeavesNoDirectory) {
  const TemporaryDirectory home;
  { const RunDirectory run(home / "deep" / "new" / ""); }
  EXPECT_FALSE(fs::exists(home / "deep"));
  make_directories(home / "theirs");
  { const RunDirectory run(home / "theirs"); }
  EXPECT_TRUE(fs::is_empty(home / "theirs"));
  {
    const RunDirectory run(home / "used");
    write_file(home / "used" / "resolved.yaml", "");
    EXPECT_TRUE(run.has_run());
  }
  EXPECT_TRUE(fs::exists(home / "used" / "resolved.yaml"));
  write_file(home / "file", "");
  EXPECT_THAT(error_message([&] { const RunDirectory run(home / "file"); }), HasSubstr("file"));
}

TEST(RunDirectoryTest, ClearingLeavesFilesThatAreNotTheRuns) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  run.publish("step", 1, 2, "last", content("1"));
  for (const char* name :
       {"resolved.yaml", "metrics.jsonl", "result.json", "events.out.tfevents.headshare.1.host", "notes.txt"}) {
    write_file(home / name, "");
  }
  run.clear();
  EXPECT_FALSE(run.has_run());
  EXPECT_THAT(names_in(home.path()), UnorderedElementsAre(".lock", "notes.txt"));
}

}  // namespace
}  // namespace headshare
