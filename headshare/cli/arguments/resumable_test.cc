#include "headshare/cli/arguments/resumable.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct SmallCommand {
  static constexpr const char* kVerb = "train";

  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
  std::string model;
  std::vector<std::string> text;
  int64_t steps = 10;
  double learning_rate = 0.001;
  RuntimeOptions runtime;

  OptionGroups groups() {
    return {option_group("Run", {field("out", &out, "where to"), field("resume", &resume, "go on"),
                                 field("overwrite", &overwrite, "forget"), field("model", &model, "which"),
                                 field("text", &text, "what to read")}),
            option_group("Training", {field("steps", &steps, "how many"), field("learning-rate", &learning_rate, "")}),
            option_group("Computing", fields(runtime))};
  }
  void forget_call() { resume = overwrite = false; }
  void make_paths_whole() {
    for (std::string& path : text) path = whole_path(path);
  }
};

Arguments arguments_of(SmallCommand& command) {
  Arguments made(SmallCommand::kVerb, "trains");
  made.optional("MODEL", "the model", &command.model);
  made.groups(command.groups());
  return made;
}

class ResumableTest : public testing::Test {
 protected:
  void begin() {
    SmallCommand command;
    command.out = out();
    command.overwrite = true;
    command.model = "m";
    command.text = {"a", "b"};
    command.learning_rate = 0.01;
    write_resolved(command, home_.path());
  }

  SmallCommand going_on(const Words& words) {
    SmallCommand called;
    Arguments typed = arguments_of(called);
    EXPECT_TRUE(typed.parse(words));
    check_resume(called);
    const Resumed<SmallCommand> both =
        resumed<SmallCommand>(typed, out(), {.free = {"out", "resume", "steps", "threads"}, .what = "the run in it"});
    EXPECT_EQ(both.began.steps, 10);
    return both.command;
  }
  std::string refusal(const Words& words) {
    return error_message([&] { going_on(words); });
  }

  std::string out() const { return home_.path().string(); }

  TemporaryDirectory home_;
};

TEST_F(ResumableTest, OptionsOfTheFirstCallAndThoseOfThisOneOnTop) {
  begin();
  const SmallCommand command = going_on({"--resume", "--steps", "20", "--out", out()});
  EXPECT_EQ(command.steps, 20);
  EXPECT_EQ(command.learning_rate, 0.01);
  EXPECT_EQ(command.model, "m");
  EXPECT_THAT(command.text, ElementsAre(whole_path("a"), whole_path("b")));
  EXPECT_TRUE(command.resume);
  EXPECT_FALSE(command.overwrite);  // is not remembered
  EXPECT_EQ(command.runtime.threads, threads_in_use());
}

TEST_F(ResumableTest, TheSameValueOnceMoreIsNoChange) {
  begin();
  EXPECT_EQ(going_on({"m", "--resume", "--learning-rate", "1e-2", "--text", "a,b"}).learning_rate, 0.01);
}

TEST_F(ResumableTest, WhatWouldMakeItAnotherRunIsRefused) {
  EXPECT_THAT(refusal({"--resume"}), HasSubstr("nothing to resume in " + out()));
  begin();
  EXPECT_THAT(refusal({"--resume", "--learning-rate", "1"}),
              HasSubstr("the run in it was begun with --learning-rate 0.01 and cannot go on with 1.0"));
  EXPECT_THAT(refusal({"--resume", "--text", "c"}), HasSubstr("--text"));
  EXPECT_THAT(refusal({"other", "--resume"}), HasSubstr("--model \"m\""));
  EXPECT_THAT(refusal({"--resume", "--config", (home_.path() / kResolvedFile).string()}),
              HasSubstr("leave --config out"));
  EXPECT_THAT(refusal({"--resume", "--overwrite"}), HasSubstr("exclude each other"));
}

TEST_F(ResumableTest, ARestartKeepsTheOptionsOfAProcess) {
  const auto words_after = [](const Words& words) {
    SmallCommand called;
    Arguments typed = arguments_of(called);
    typed.read(words);
    return resuming_words(called, typed);
  };
  EXPECT_THAT(words_after({"--out", "run", "--steps", "3"}), ElementsAre("--resume", "--out", "run"));
  EXPECT_THAT(words_after({"--num-threads", "2", "--device", "cpu", "--out", "run"}),
              ElementsAre("--resume", "--out", "run", "--device=cpu", "--threads=2"));
}

TEST_F(ResumableTest, AnInterruptionSaysHowToGoOnWhereThereIsSomething) {
  const auto stopped = [&] {
    SmallCommand command;
    command.out = out();
    try {
      work_resumably(command, []() -> int { throw Interrupted("stopped"); });
    } catch (const Interrupted& interrupted) {
      return std::string(interrupted.what());
    }
    return std::string();
  };
  EXPECT_EQ(stopped(), "stopped");
  begin();
  EXPECT_EQ(stopped(), "stopped; continue with: headshare train --resume --out " + out());
}

}  // namespace
}  // namespace headshare
