#include "headshare/cli/terminal/terminal.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "headshare/base/error.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/table.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// This is a progress line that writes to a temporary file, by a clock set by hand.
class Recorder {
  std::FILE* file_ = std::tmpfile();  // outlives `line`, which still writes when it goes
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer_{file_, std::fclose};

 public:
  explicit Recorder(bool terminal)
      : line("work", {.file = file_, .terminal = terminal, .width = 40, .now = [this] { return now; }}) {}

  std::string written() {
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

  double now = 0;
  ProgressLine line;
};

TEST(ProgressLineTest, OnATerminalOneLineIsWrittenOver) {
  Recorder recorder(/*terminal=*/true);
  recorder.line.update(0, 100);
  recorder.now = 0.05;
  recorder.line.update(1, 100);  // too soon
  recorder.now = 10;
  recorder.line.update(25, 100, "loss 3.21");
  recorder.line.hide();
  EXPECT_EQ(recorder.written(), "\rwork\033[K\rwork  25%  30 s left  loss 3.21\033[K\r\033[K");
}

TEST(ProgressLineTest, LinesAreCutAtTheWidth) {
  Recorder recorder(/*terminal=*/true);
  recorder.line.update(0, 0, std::string(100, 'x'));
  EXPECT_EQ(recorder.written(), "\rwork  " + std::string(33, 'x') + "\033[K");
}

TEST(ProgressLineTest, PartsThatDoNotFitAreLeftOutWhole) {
  Recorder recorder(/*terminal=*/true);
  recorder.line.update(0, 0, "step 1510/2000  loss 2.8399  lr 0.000155923");
  EXPECT_EQ(recorder.written(), "\rwork  step 1510/2000  loss 2.8399\033[K");
}

TEST(ProgressLineTest, ElsewhereFewLines) {
  Recorder recorder(/*terminal=*/false);
  for (int second = 0; second <= 200; ++second) {
    recorder.now = second;
    recorder.line.update(second, 200);
  }
  const std::string written = recorder.written();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 10);
  EXPECT_THAT(written, HasSubstr("work  10%  3:00 left\n"));
}

TEST(ProgressLineTest, ShortWorkIsSilentElsewhere) {
  Recorder recorder(/*terminal=*/false);
  for (int part = 0; part <= 100; ++part) {
    recorder.now = part * 0.04;
    recorder.line.update(part, 100);
  }
  EXPECT_EQ(recorder.written(), "");
}

TEST(ProgressLineTest, SlowWorkSpeaksEveryThirtySeconds) {
  Recorder recorder(/*terminal=*/false);
  for (int second = 0; second <= 120; ++second) {
    recorder.now = second;
    recorder.line.update(second, 100000);
  }
  const std::string written = recorder.written();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 4);
}

TEST(ProgressLineTest, ResumedWorkGuessesFromItsOwnSpeed) {
  Recorder recorder(/*terminal=*/false);
  recorder.line.update(50, 100);
  recorder.now = 10;
  recorder.line.update(60, 100);
  EXPECT_EQ(recorder.written(), "work  60%  40 s left\n");
}

TEST(TextTableTest, NumbersStandToTheRight) {
  TextTable table({{"scheme", Align::kLeft}, {"attention parameters"}, {"note", Align::kLeft}});
  table.add({"mha", "28,311,552", "all"});
  table.add({"sha", "8,847"});
  table.add_spanning("el_shared", "impossible: because");
  EXPECT_EQ(table.text(100),
            "            attention\n"
            "scheme     parameters  note\n"
            "---------  ----------  ----\n"
            "mha        28,311,552  all\n"
            "sha             8,847\n"
            "el_shared  impossible: because\n");
}

TEST(TextTableTest, WideTextIsWrapped) {
  TextTable table({{"name", Align::kLeft}, {"text", Align::kLeft}, {"number"}});
  table.add({"one", "a long text that would not fit at all in so few columns", "17"});
  std::istringstream lines(table.text(40));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 40U) << line;
}

TEST(TextTableTest, ColumnsThatDoNotFitGoOnBelow) {
  TextTable table({{"name", Align::kLeft, /*wraps=*/false}, {"first"}, {"second"}, {"third"}});
  table.add({"mha", "1,111,111", "2,222,222", "3,333,333"});
  table.add_spanning("el", "left out");
  EXPECT_EQ(table.text(26),
            "name      first     second\n"
            "----  ---------  ---------\n"
            "mha   1,111,111  2,222,222\n"
            "el    left out\n"
            "\n"
            "name      third\n"
            "----  ---------\n"
            "mha   3,333,333\n");
}

TEST(TextTableTest, WidthsCountCodePoints) {
  TextTable table({{"x", Align::kLeft}, {"y"}});
  table.add({"\xc3\xa9\xc3\xa9", "1"});
  table.add({"ab", "2"});
  EXPECT_EQ(table.text(100), "x   y\n--  -\n\xc3\xa9\xc3\xa9  1\nab  2\n");
}

TEST(TerminalTest, WidthFollowsColumnsWithinBounds) {
  ::setenv("COLUMNS", "72", 1);
  EXPECT_EQ(terminal_width(Stream::kOut), 72);
  ::setenv("COLUMNS", "10000", 1);
  EXPECT_EQ(terminal_width(Stream::kOut), 100);
  ::setenv("COLUMNS", "3", 1);
  EXPECT_EQ(terminal_width(Stream::kOut), 40);
  ::unsetenv("COLUMNS");
}

// Calls print_result(as_json, ...), and returns what it wrote to standard output, with a line "called" where it asked
// for the JSON.
std::string printed_result(bool as_json) {
  testing::internal::CaptureStdout();
  bool called = false;
  const auto json = [&called] {
    called = true;
    return std::string("{\"loss\": 1.5}\n");
  };
  print_result(as_json, json, [] { print("loss 1.5\n"); });
  flush_output();
  return testing::internal::GetCapturedStdout() + (called ? "called\n" : "");
}

TEST(TerminalTest, AResultIsJsonOrText) {
  EXPECT_EQ(printed_result(/*as_json=*/true), "{\"loss\": 1.5}\ncalled\n");
  EXPECT_EQ(printed_result(/*as_json=*/false), "loss 1.5\n");
}

TEST(TerminalTest, AResultIsJsonAsWellWhereACallerNamesADescriptor) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  ::setenv("HEADSHARE_JSON_FD", std::to_string(::fileno(file.get())).c_str(), 1);
  const std::string printed = printed_result(/*as_json=*/false);
  ::unsetenv("HEADSHARE_JSON_FD");
  EXPECT_EQ(printed, "loss 1.5\ncalled\n");
  std::string written(100, '\0');
  std::rewind(file.get());
  written.resize(std::fread(written.data(), 1, written.size(), file.get()));
  EXPECT_EQ(written, "{\"loss\": 1.5}\n");
}

TEST(TerminalTest, ADescriptorForJsonThatIsNoneIsRefused) {
  for (const char* named : {"1", "results.json", "99"}) {
    ::setenv("HEADSHARE_JSON_FD", named, 1);
    EXPECT_THROW(print_result(
                     false, [] { return std::string("{}"); }, [] {}),
                 Error)
        << named;
  }
  ::unsetenv("HEADSHARE_JSON_FD");
}

}  // namespace
}  // namespace headshare
