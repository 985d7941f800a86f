#include "headshare/host/cell_process.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A Listener notes what it hears.
class Listener : public Observer {
 public:
  void on_step(const StepReport& report) override {
    heard.push_back(join_text("step ", report.step, "/", report.total_steps, " ", report.loss));
  }
  void on_evaluation_progress(int64_t done, int64_t total) override {
    heard.push_back(join_text("evaluation ", done, "/", total));
  }

  std::vector<std::string> heard;
};

class CellProcessTest : public testing::Test {
 protected:
  // Runs this shell script as the program.
  std::optional<std::string> run(const std::string& script, std::vector<std::string> words = {}) {
    const fs::path program = home_.path() / "program";
    write_file(program, "#!/bin/sh\n" + script);
    fs::permissions(program, fs::perms::owner_all);
    const CellProcess process{.program = program,
                              .words = std::move(words),
                              .observer = &listener_,
                              .on_note = [this](const std::string& note) { notes_.push_back(note); },
                              .stop_requested = [this] { return stop_; }};
    return process.run();
  }

  TemporaryDirectory home_;
  Listener listener_;
  std::vector<std::string> notes_;
  bool stop_ = false;
};

TEST_F(CellProcessTest, TheProgramGetsItsWordsAndNoInput) {
  EXPECT_EQ(run("echo \"note: $*\" >&2; read -r line || echo no input >&2", {"train-cell", "a b", "c"}), std::nullopt);
  EXPECT_THAT(notes_, ElementsAre("train-cell a b c", "no input"));
}

TEST_F(CellProcessTest, ItsLinesReachTheObserver) {
  const StepReport step{.step = 3, .total_steps = 9, .loss = 2.5};
  std::string lines;
  ReportingObserver reporting([&](const std::string& line) { lines += line; });
  reporting.on_step(step);
  reporting.on_evaluation_progress(1, 4);
  write_file(home_.path() / "lines", lines + "no JSON\n");
  EXPECT_EQ(run("cat '" + (home_.path() / "lines").string() + "'"), std::nullopt);
  EXPECT_THAT(listener_.heard, ElementsAre("step 3/9 2.5", "evaluation 1/4"));
}

TEST_F(CellProcessTest, AFailureIsASentence) {
  EXPECT_EQ(run("exit 3"), "its process ended with exit code 3");
  EXPECT_EQ(run("echo 'note: a hint' >&2; echo 'error: too many heads' >&2; exit 1"), "too many heads");
  EXPECT_THAT(notes_, ElementsAre("a hint"));
  EXPECT_THAT(run("kill -KILL $$").value_or(""),
              testing::AllOf(HasSubstr("ended by signal 9"), HasSubstr("when memory runs out")));
}

TEST_F(CellProcessTest, AStopReachesTheChildAndIsWaitedFor) {
  stop_ = true;
  const fs::path saved = home_.path() / "saved";
  const std::string script = "trap 'touch " + saved.string() + "; exit 130' TERM; while :; do sleep 0.01; done";
  EXPECT_THROW(run(script), Interrupted);
  EXPECT_TRUE(fs::exists(saved));
}

TEST_F(CellProcessTest, AProgramThatIsMissingIsNamed) {
  const CellProcess process{.program = home_.path() / "missing",
                            .words = {},
                            .observer = &listener_,
                            .on_note = [](const std::string&) {},
                            .stop_requested = [] { return false; }};
  EXPECT_THAT(error_message([&] { process.run(); }), testing::AllOf(HasSubstr("cannot start"), HasSubstr("missing")));
}

}  // namespace
}  // namespace headshare
