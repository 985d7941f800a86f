#include "headshare/base/files/output_mark.h"

#include <gmock/gmock.h>

#include "headshare/base/files/directory_lock.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputMarkTest : public testing::Test {
 protected:
  OutputMark mark(const std::string& verb = "train") const {
    return OutputMark(
        home_.path(),
        {.verb = verb, .what = "a run", .names = {"result.json", "parts"}, .unmistakable = {"events.ours.*"}});
  }
  void write(const std::string& name, const std::string& content = "x") const { write_file(home_ / name, content); }

  TemporaryDirectory home_;
};

TEST(NameMatchesTest, OneStarStandsForAnything) {
  EXPECT_TRUE(name_matches("a.txt", "a.txt"));
  EXPECT_FALSE(name_matches("a.txt.gz", "a.txt"));
  EXPECT_TRUE(name_matches("kept-input-1.txt", "kept-input-*"));
  EXPECT_TRUE(name_matches("ab", "a*b"));
  EXPECT_FALSE(name_matches("a", "a*a"));  // the two ends do not overlap
}

TEST_F(OutputMarkTest, WithoutAMarkEverythingIsSomebodyElses) {
  EXPECT_NO_THROW(mark().check());
  write("other.txt");
  EXPECT_NO_THROW(mark().check());
  write("events.ours.1");  // nobody else gives such a name
  EXPECT_NO_THROW(mark().check());
  for (const char* name : {"result.json", "parts"}) {
    write(name);
    EXPECT_THAT(error_message([&] { mark().check(); }), AllOf(HasSubstr(home_ / name), HasSubstr("would be lost")));
    mark().clear();
    EXPECT_EQ(read_file(home_ / name), "x");
    fs::remove(home_ / name);
  }
}

TEST_F(OutputMarkTest, ClearsItsOwnNamesAndNothingElse) {
  mark().set();
  EXPECT_TRUE(mark().begun());
  make_directories(home_ / "parts" / "deep");
  for (const char* name : {"result.json", "events.ours.1", "events.theirs.1", "notes.txt"}) write(name);
  EXPECT_NO_THROW(mark().check());
  mark().clear({"result.json"});
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(home_.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre(kMarkFile, "result.json", "events.theirs.1", "notes.txt"));
}

TEST_F(OutputMarkTest, ADirectoryOfAnotherVerbIsRefused) {
  mark("compare").set();
  EXPECT_FALSE(mark().begun());
  EXPECT_THAT(error_message([&] { mark().check(); }), HasSubstr("`headshare compare` wrote"));
}

TEST_F(OutputMarkTest, OutputsFromBeforeMarksAreKnownByTheirOptions) {
  write(kResolvedFile, "# headshare train --config resolved.yaml\n\nrun:\n");
  write("result.json");
  EXPECT_TRUE(mark().begun());
  EXPECT_NO_THROW(mark().check());
  EXPECT_FALSE(mark("compare").begun());
  write(kResolvedFile, "# somebody else's\n");
  EXPECT_THAT(error_message([&] { mark().check(); }), HasSubstr("result.json"));
}

TEST_F(OutputMarkTest, TheMarkNamesWhatIsOurs) {
  EXPECT_THAT(marked_names(home_.path()), IsEmpty());
  mark().set();
  EXPECT_THAT(marked_names(home_.path()), ElementsAre("result.json", "parts", "events.ours.*"));
  for (const char* damaged : {"", "[", "[1]", "{\"names\": 1}", "{\"names\": [1, {}]}", "{\"verb\": 1}"}) {
    write(kMarkFile, damaged);
    EXPECT_THAT(marked_names(home_.path()), IsEmpty()) << damaged;
    EXPECT_FALSE(mark().begun()) << damaged;
  }
}

TEST_F(OutputMarkTest, OwnsTheNamesOfTheMarkAndNoOthers) {
  EXPECT_FALSE(mark().owns("result.json"));
  write(kMarkFile, R"({"verb": "train", "names": ["older.json"]})");
  EXPECT_TRUE(mark().owns("older.json"));
  EXPECT_FALSE(mark().owns("result.json"));
  EXPECT_TRUE(mark().may_write("result.json"));
  EXPECT_FALSE(mark("compare").owns("older.json"));
  fs::remove(home_ / kMarkFile);
  write(kResolvedFile, "# headshare train --config resolved.yaml\n");
  EXPECT_TRUE(mark().owns("events.ours.1"));
  EXPECT_FALSE(mark().owns("notes.html"));
}

TEST_F(OutputMarkTest, OnlyItsOwnUnfinishedFilesAreRemoved) {
  for (const char* name : {"result.json.partial-1", ".headshare.partial-1", "events.ours.3.partial-1"}) write(name);
  for (const char* name : {"notes.txt.partial-1", "result.json.partial-notes", "other.json.partial-1"}) write(name);
  { const DirectoryLock lock(home_.path()); }
  EXPECT_TRUE(fs::exists(home_ / "result.json.partial-1")) << "nothing is ours before the mark";
  mark().set();
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(home_.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre(kMarkFile, "notes.txt.partial-1", "result.json.partial-notes",
                                                  "other.json.partial-1"));
}

TEST_F(OutputMarkTest, WhatAppearedBeforeTheMarkIsSomebodyElses) {
  mark().check();
  write("result.json");
  EXPECT_THAT(error_message([&] { mark().set(); }), HasSubstr("would be lost"));
  EXPECT_FALSE(fs::exists(home_ / kMarkFile));
  mark().clear();
  EXPECT_TRUE(fs::exists(home_ / "result.json"));
}

TEST_F(OutputMarkTest, ALinkIsNoLockUnlessItLeadsToAFile) {
  const TemporaryDirectory elsewhere;
  fs::create_symlink(elsewhere / "target", home_ / ".lock");
  EXPECT_THAT(error_message([&] { const DirectoryLock lock(home_.path()); }),
              AllOf(HasSubstr(home_ / ".lock"), HasSubstr("symbolic link")));
  EXPECT_TRUE(fs::is_symlink(home_ / ".lock"));
  EXPECT_FALSE(fs::exists(elsewhere / "target"));
  write_file(elsewhere / "target", "");
  {
    const DirectoryLock lock(home_.path());
    EXPECT_THAT(error_message([&] { const DirectoryLock second(home_.path()); }), HasSubstr("in use by another"));
  }
  EXPECT_TRUE(fs::is_symlink(home_ / ".lock"));
}

TEST_F(OutputMarkTest, ALockStaysOnlyWhereSomethingWasBegun) {
  write("theirs");
  { const DirectoryLock lock(home_.path()); }
  EXPECT_FALSE(fs::exists(home_ / ".lock"));
  { const DirectoryLock lock(home_ / "a" / "b"); }
  EXPECT_FALSE(fs::exists(home_ / "a"));
  {
    const DirectoryLock lock(home_.path());
    EXPECT_THAT(error_message([&] { const DirectoryLock second(home_.path()); }), HasSubstr("in use by another"));
    EXPECT_TRUE(fs::exists(home_ / ".lock"));
    mark().set();
  }
  EXPECT_TRUE(fs::exists(home_ / ".lock"));
  fs::remove(home_ / kMarkFile);
  { const DirectoryLock lock(home_.path()); }
  EXPECT_TRUE(fs::exists(home_ / ".lock")) << "it was there before";
}

}  // namespace
}  // namespace headshare
