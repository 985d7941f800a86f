#include "headshare/host/resolved_file.h"

#include <gmock/gmock.h>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/train/processes.h"
#include "headshare/train/thread_reducer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A call of `train` wrote a directory, and another one goes on there.
class ResolvedFileTest : public testing::Test {
 protected:
  struct Options {
    double learning_rate = 0.001;
    int64_t steps = 10;
    int64_t added = 7;
    std::optional<int64_t> threads;
  };

  // With `later` the options are those of a version that has one option more.
  OptionGroups groups(Options* o, bool later = false) {
    Fields own = {field("learning-rate", &o->learning_rate, "step size"), field("steps", &o->steps, "how many")};
    if (later) own.push_back(field("added", &o->added, "what a later version added"));
    return {option_group("Training", std::move(own)),
            option_group("Computing", {field("threads", &o->threads, "threads")})};
  }
  void begin() {
    Options options{.learning_rate = 0.01, .threads = 12};
    write_settings(resolved(), "train", groups(&options));
  }
  fs::path resolved() const { return home_.path() / kResolvedFile; }
  std::string out() const { return home_.path().string(); }

  // Returns the Error of going on, or the learning rate and the notices.
  std::string going_on(bool later = false) {
    std::string notes;
    const NoticeHandler before = set_notice_handler([&](const std::string& one) { notes += "; " + one; });
    Options options;
    OptionGroups made = groups(&options, later);
    const std::string error = error_message([&] { read_resolved(made, "train", out()); });
    set_notice_handler(before);
    return error == "no error" ? join_text(options.learning_rate, notes) : error;
  }

  TemporaryDirectory home_;
};

TEST_F(ResolvedFileTest, AFileThatWasCutShortIsRefused) {
  begin();
  const std::string whole = read_file(resolved());
  EXPECT_EQ(going_on(), "0.01");
  for (size_t bytes = 0; bytes < whole.size(); bytes += 5) {
    write_file(resolved(), whole.substr(0, bytes));
    EXPECT_THAT(going_on(), testing::AnyOf(HasSubstr("cut short"), HasSubstr("'training' has no value"),
                                           HasSubstr("'computing' has no value")))
        << whole.substr(0, bytes);
  }
  std::string without = whole;
  without.erase(without.find("  learning-rate: "), std::string("  learning-rate: 0.01\n").size());
  write_file(resolved(), without);
  EXPECT_THAT(going_on(), HasSubstr("it has 2 options of 3 and lacks learning-rate; put the file back"));
}

TEST_F(ResolvedFileTest, OptionsThatALaterVersionAddedTakeTheirDefaults) {
  begin();
  EXPECT_THAT(going_on(/*later=*/true), testing::AllOf(HasSubstr("0.01; "), HasSubstr("had no option added")));
  // Earlier versions did not count options.
  std::string old = read_file(resolved());
  old.erase(old.find("# options:"), std::string("# options: 3\n").size());
  write_file(resolved(), old);
  EXPECT_EQ(going_on(), "0.01");
  EXPECT_THAT(going_on(/*later=*/true), testing::AllOf(HasSubstr("0.01; "), HasSubstr("had no option added")));
  write_file(resolved(), old.substr(0, old.find("computing:")));
  EXPECT_THAT(going_on(), testing::AllOf(HasSubstr("cut short"), HasSubstr("lacks threads")));
  // Every version had a learning rate, so that a file without one was cut short.
  old.erase(old.find("  learning-rate: "), std::string("  learning-rate: 0.01\n").size());
  write_file(resolved(), old);
  EXPECT_THAT(going_on(),
              testing::AllOf(HasSubstr("cut short"), HasSubstr("it has 2 options and lacks learning-rate;")));
}

TEST_F(ResolvedFileTest, Process0ReadsItForAll) {
  begin();
  run_together(2, [&](Reducer& processes) {
    const std::string here = leads(processes) ? out() : (home_ / "of another machine").string();
    Options options;
    OptionGroups made = groups(&options);
    read_resolved(made, "train", here, processes);
    EXPECT_EQ(options.learning_rate, 0.01);
    EXPECT_THAT(error_message([&] { read_resolved(made, "compare", here, processes); }),
                HasSubstr("`headshare train` wrote"));
  });
}

TEST_F(ResolvedFileTest, IsReadOnce) {
  begin();
  const SettingsFile file(resolved());
  fs::remove(resolved());
  EXPECT_EQ(file.titled_verb(), "train");
  EXPECT_EQ(file.writer(), "train");
  EXPECT_EQ(file.promised_options(), 3U);
  EXPECT_TRUE(file.last_line_ends());
  Options options;
  OptionGroups made = groups(&options);
  EXPECT_EQ(file.set(made).size(), 3U);
  EXPECT_EQ(options.learning_rate, 0.01);
}

// Some words mean something else in YAML.
TEST_F(ResolvedFileTest, AnyTextIsReadBack) {
  for (const std::string text :
       {"null", "Null", "NULL", "~", "true", "no", "1e3", "- a", "a: b", "a #b", " ", "nullable"}) {
    std::string value = text;
    const OptionGroups written = {option_group("Data", {field("name", &value, "a name")})};
    write_settings(resolved(), "train", written);
    value.clear();
    OptionGroups again = {option_group("Data", {field("name", &value, "a name")})};
    SettingsFile(resolved()).set(again);
    EXPECT_EQ(value, text);
  }
}

TEST_F(ResolvedFileTest, ATitleAloneMakesNoFileOfAVerb) {
  for (const char* text : {"# headshare train\nsteps: 3\n", "# headshare train --config resolved.yaml\nsteps: 3\n"}) {
    write_file(resolved(), text);
    EXPECT_EQ(SettingsFile(resolved()).titled_verb(), "train");
    EXPECT_EQ(SettingsFile(resolved()).writer(), "") << text;
  }
}

TEST_F(ResolvedFileTest, AnotherVerbsDirectoryIsNamed) {
  write_file(resolved(), "# headshare compare --config resolved.yaml\n\ncomparison:\n  out: x\n");
  EXPECT_EQ(going_on(), join_text(out(), " holds what `headshare compare` wrote, and this is `headshare train`; go on ",
                                  "with: headshare compare --resume --out ", out()));
  fs::remove(resolved());
  EXPECT_THAT(going_on(), HasSubstr("nothing to resume"));
}

TEST_F(ResolvedFileTest, AnotherNumberOfThreadsIsNoted) {
  std::vector<std::string> notes;
  const NoticeHandler before = set_notice_handler([&](const std::string& one) { notes.push_back(one); });
  note_other_threads({.threads = 2}, {.threads = 2});
  note_other_threads({}, {.threads = 2});  // the program that began noted no threads
  note_other_threads({.threads = 2}, {.threads = 1});
  set_notice_handler(before);
  EXPECT_THAT(notes, ElementsAre(testing::AllOf(HasSubstr("begun with --threads 2 and goes on with 1"),
                                                HasSubstr("last bits"))));
}

TEST(RefuseChangedTest, NamesTheOptionAndBothValues) {
  const nlohmann::json began = {{"steps", 10}, {"seed", 1}, {"out", "a"}};
  const nlohmann::json now = {{"steps", 20}, {"seed", 2}, {"out", "b"}};
  EXPECT_EQ(error_message([&] {
              refuse_changed(began, now, {"steps", "out"}, "the run in a");
            }),
            "the run in a was begun with --seed 1 and cannot go on with 2; leave --seed out, or use another --out");
  EXPECT_EQ(error_message([&] { refuse_changed(began, now, {"steps", "out", "seed"}, "the run in a"); }), "no error");
}

TEST(WholePathTest, IsFoundFromAnyDirectory) {
  EXPECT_EQ(whole_path("a/../b"), (fs::current_path() / "b").string());
  EXPECT_EQ(whole_path("-"), "-");
  EXPECT_EQ(whole_path(""), "");
}

}  // namespace
}  // namespace headshare
