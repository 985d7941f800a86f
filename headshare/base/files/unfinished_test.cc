#include "headshare/base/files/unfinished.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory)) found.push_back(entry.path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the number of a process that has ended.
pid_t gone_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(UnfinishedTest, RenamesToFreeNamesOnly) {
  const TemporaryDirectory home;
  write_file(home / "a", "a");
  write_file(home / "taken", "theirs");
  EXPECT_EQ(rename_to_free(home / "a", home / "taken"), EEXIST);
  EXPECT_EQ(rename_to_free(home / "a", home / "free"), 0);
  for (const char* name : {"directory", "empty"}) make_directories(home / name);
  EXPECT_EQ(rename_to_free(home / "directory", home / "empty"), EEXIST);
  EXPECT_EQ(rename_to_free(home / "directory", home / "taken"), EEXIST);
  EXPECT_EQ(rename_to_free(home / "directory", home / "moved"), 0);
  EXPECT_EQ(rename_to_free(home / "none", home / "other"), ENOENT);
  EXPECT_EQ(read_file(home / "taken"), "theirs");
  EXPECT_THAT(names_in(home.path()), ElementsAre("empty", "free", "moved", "taken"));
}

// This imitates a file system that has no files without names.
TEST(UnfinishedTest, AFileWithATemporaryNameFollowsTheSameRules) {
  const TemporaryDirectory home;
  write_file(home / "taken", "theirs");
  const fs::path temporary = partial_name(home / "taken");
  write_file(temporary, "ours");
  EXPECT_EQ(name_unfinished(-1, temporary, home / "taken", Replace::kNothing), EEXIST);
  EXPECT_EQ(read_file(home / "taken"), "theirs");
  EXPECT_EQ(name_unfinished(-1, temporary, home / "taken", Replace::kFile), 0);
  EXPECT_EQ(read_file(home / "taken"), "ours");
  write_file(temporary, "ours");
  fs::create_symlink("taken", home / "link");
  EXPECT_EQ(name_unfinished(-1, temporary, home / "link", Replace::kFile), EEXIST);
  EXPECT_EQ(name_unfinished(-1, temporary, home / "free", Replace::kNothing), 0);
  EXPECT_THAT(names_in(home.path()), ElementsAre("free", "link", "taken"));
}

void make_old(const fs::path& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
}

TEST(UnfinishedTest, OnlyWhatNobodyWritesIsSwept) {
  const TemporaryDirectory home;
  const auto sweep = [&] { return sweep_unfinished(home / "x", [](const fs::path&) { return true; }); };
  EXPECT_FALSE(sweep());
  const std::string dead = join_text(".partial-", gone_process());
  write_file(home / ("x" + dead), "half");
  make_old(home / ("x" + dead));
  make_directories(home / ("x.partial-" + std::to_string(::getpid())) / "deep");
  for (const std::string& theirs : {"y" + dead, std::string("x.partial-1"), std::string("x.partial-notes")}) {
    write_file(home / theirs, "theirs");
  }
  fs::create_symlink("nowhere", home / ("x" + std::string(".partial-1000000000")));
  EXPECT_FALSE(sweep());
  EXPECT_THAT(names_in(home.path()), ElementsAre("x.partial-1", "x.partial-notes", "y" + dead));

  // A process on another machine shares the file system: its number says nothing here, its lock does.
  make_directories(home / ("x" + dead));
  make_old(home / ("x" + dead));
  const int descriptor = ::open((home / ("x" + dead)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_TRUE(lock_unfinished(descriptor));
  EXPECT_TRUE(sweep());
  EXPECT_TRUE(fs::exists(home / ("x" + dead)));
  ::close(descriptor);
  EXPECT_FALSE(sweep());
  EXPECT_FALSE(fs::exists(home / ("x" + dead)));
}

TEST(UnfinishedTest, WhatIsFreshOrForeignIsNotSwept) {
  const TemporaryDirectory home;
  const std::string dead = join_text("x.partial-", gone_process());
  const auto sweep = [&](bool ours) { return sweep_unfinished(home / "x", [&](const fs::path&) { return ours; }); };
  write_file(home / dead, "another machine's");
  EXPECT_FALSE(sweep(true));
  EXPECT_THAT(names_in(home.path()), ElementsAre(dead));
  make_old(home / dead);
  EXPECT_FALSE(sweep(false));
  EXPECT_THAT(names_in(home.path()), ElementsAre(dead));
  EXPECT_FALSE(sweep(true));
  EXPECT_THAT(names_in(home.path()), IsEmpty());
}

TEST(UnfinishedTest, AKilledWriterLeavesNothing) {
  const TemporaryDirectory home;
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(home / "x");
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  fs::path temporary;
  const int descriptor = open_unfinished(home / "probe", &temporary);
  ::close(descriptor);
  if (!temporary.empty()) GTEST_SKIP() << home.path() << " cannot hold files without names";
  EXPECT_THAT(names_in(home.path()), IsEmpty());
}

}  // namespace
}  // namespace headshare
