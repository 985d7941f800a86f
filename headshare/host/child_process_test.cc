#include "headshare/host/child_process.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  // Starts this shell script as a program.
  std::unique_ptr<ChildProcess> started(const std::string& script, const std::vector<std::string>& words = {}) {
    const fs::path program = home_.path() / "program";
    write_file(program, "#!/bin/sh\n" + script);
    fs::permissions(program, fs::perms::owner_all);
    return std::make_unique<ChildProcess>(program, words, [this](const std::string& note) { notes_.push_back(note); });
  }

  // Returns how the script ended.
  std::string run(const std::string& script, const std::vector<std::string>& words = {}) {
    return started(script, words)->wait().how;
  }

  TemporaryDirectory home_;
  std::vector<std::string> notes_;
};

TEST_F(ChildProcessTest, TheProgramGetsItsWordsAndNoInput) {
  EXPECT_EQ(run("echo \"note: $*\" >&2; read -r line || echo no input >&2", {"cell", "a b", "c"}), "");
  EXPECT_THAT(notes_, ElementsAre("cell a b c", "no input"));
}

TEST_F(ChildProcessTest, AFailureIsASentence) {
  EXPECT_EQ(run("exit 3"), "its process ended with exit code 3");
  EXPECT_EQ(started("exit 75")->wait().code, 75);
  EXPECT_EQ(run("echo 'note: a hint' >&2; echo 'error: too many heads' >&2; exit 1"), "too many heads");
  EXPECT_THAT(notes_, ElementsAre("a hint"));
  EXPECT_THAT(run("kill -KILL $$"), testing::AllOf(HasSubstr("ended by signal 9"), HasSubstr("when memory runs out")));
}

TEST_F(ChildProcessTest, AStopReachesTheChildAndIsWaitedFor) {
  const fs::path saved = home_.path() / "saved";
  const auto child =
      started("trap 'touch " + saved.string() + "; exit 130' TERM; echo ready >&2; while :; do sleep 0.01; done");
  while (notes_.empty()) EXPECT_FALSE(child->look());
  child->ask_to_stop();
  EXPECT_EQ(child->wait().code, 130);
  EXPECT_TRUE(fs::exists(saved));
}

TEST_F(ChildProcessTest, NoProcessOutlivesIt) {
  auto child = started("echo ready >&2; exec sleep 1000");
  while (notes_.empty()) EXPECT_FALSE(child->look());
  const fs::path process = fs::path("/proc") / std::to_string(child->id());
  EXPECT_TRUE(fs::exists(process));
  child.reset();
  EXPECT_FALSE(fs::exists(process));
}

TEST_F(ChildProcessTest, AProgramThatIsMissingIsNamed) {
  EXPECT_THAT(error_message([&] { ChildProcess(home_.path() / "missing", {}, [](const std::string&) {}); }),
              testing::AllOf(HasSubstr("cannot start"), HasSubstr("missing")));
}

}  // namespace
}  // namespace headshare
