#include "headshare/host/command.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TEST(CommandTest, WritesOnBothStreamsAndEndsWithItsStatus) {
  const CommandResult result = run_command({"sh", "-c", "echo out; echo error >&2; read -r line || exit 3"});
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.error, "error\n");
  EXPECT_EQ(WEXITSTATUS(result.status), 3);
  EXPECT_EQ(ended_with(result.status), "exit code 3");
  EXPECT_EQ(ended_with(run_command({"sh", "-c", "kill -KILL $$"}).status), "signal 9 (Killed)");
}

// A pipe holds 64 KiB: a program that writes more must not wait for ever.
TEST(CommandTest, MuchIsRead) {
  const CommandResult result = run_command({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"});
  EXPECT_EQ(result.out.size(), 300000u);
  EXPECT_EQ(result.error.size(), 300000u);
}

TEST(CommandTest, NoShellReadsItsWords) {
  const std::string word = "a b'c\"d$HOME`id`\\ ;*";
  EXPECT_EQ(run_command({"printf", "%s", word}).out, word);
}

TEST(CommandTest, AProgramThatIsMissingIsNamed) {
  EXPECT_THAT(error_message([] { run_command({"no-such-program", "x"}); }), HasSubstr("cannot start no-such-program"));
  EXPECT_TRUE(has_command("sh"));
  EXPECT_FALSE(has_command("no-such-program"));
}

}  // namespace
}  // namespace headshare
