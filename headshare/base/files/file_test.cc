#include "headshare/base/files/file.h"

#include <gmock/gmock.h>

#include <array>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("headshare_file_test_" + std::to_string(::getpid()));
    make_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string content("a\0b\nc", 5);
  write_file(directory_ / "x", content);
  EXPECT_EQ(read_file(directory_ / "x"), content);
  write_file(directory_ / "x", "shorter");
  EXPECT_EQ(read_file(directory_ / "x"), "shorter");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AnUncommittedFileLeavesNothing) {
  write_file(directory_ / "x", "old");
  {
    AtomicFile file(directory_ / "x");
    file.write("new, unfinished");
  }
  EXPECT_EQ(read_file(directory_ / "x"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AFullDiskKeepsTheOldFile) {
  write_file(directory_ / "x", "old");
  const FileSizeLimit limit(1000);
  const std::string text = error_message([&] { write_file(directory_ / "x", std::string(5000, 'y')); });
  EXPECT_THAT(text, testing::HasSubstr((directory_ / "x").string()));
  EXPECT_THAT(text, testing::HasSubstr("after 1000 bytes"));
  EXPECT_EQ(read_file(directory_ / "x"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  EXPECT_THAT(error_message([&] { read_file(directory_ / "none"); }), testing::HasSubstr("No such file"));
  EXPECT_THAT(error_message([&] { read_file(directory_); }), testing::HasSubstr("it is a directory"));
  EXPECT_THAT(error_message([&] { check_readable(directory_); }), testing::HasSubstr("it is a directory"));
  EXPECT_THAT(error_message([&] { write_file(directory_, "x"); }), testing::HasSubstr("it is a directory"));
  EXPECT_THAT(error_message([&] { write_file(directory_ / "no" / "where", "x"); }),
              testing::HasSubstr("cannot create"));
  write_file(directory_ / "large", std::string(100, 'x'));
  EXPECT_THAT(error_message([&] { read_file(directory_ / "large", 99); }), testing::HasSubstr("99 bytes"));
  EXPECT_THAT(error_message([&] { make_directories(directory_ / "large"); }), testing::HasSubstr("large"));
}

TEST_F(FileTest, MapsFilesEvenEmptyOnes) {
  write_file(directory_ / "empty", "");
  EXPECT_EQ(MappedFile(directory_ / "empty").size(), 0u);
  write_file(directory_ / "x", "abc");
  MappedFile mapped(directory_ / "x");
  const MappedFile moved(std::move(mapped));
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_EQ(static_cast<char>(moved.data()[2]), 'c');
}

class ReplaceDirectoryTest : public testing::Test {
 protected:
  ReplaceDirectoryTest() {
    for (const char* name : {"fresh", "target"}) {
      make_directories(directory_ / name);
      write_file(directory_ / name / "file", name);
    }
  }
  // A directory is replaced in one of two ways: as replace_directory() does it, and as a file system needs it that
  // cannot exchange two names.
  using Replacing = void (*)(const fs::path& fresh, const fs::path& target, const CheckReplaced& check);
  static constexpr std::array<Replacing, 2> kWays = {replace_directory, replace_in_two_steps};

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_.path())) found.push_back(entry.path().filename());
    return found;
  }

  TemporaryDirectory directory_;
};

TEST_F(ReplaceDirectoryTest, LooksAtWhatIsReplacedAndDeletesIt) {
  for (const Replacing replace : kWays) {
    std::string seen;
    replace(directory_ / "fresh", directory_ / "target", [&](const fs::path& old) {
      EXPECT_NE(old, directory_ / "target");
      seen = read_file(old / "file");
    });
    EXPECT_EQ(seen, "target");
    EXPECT_EQ(read_file(directory_ / "target" / "file"), "fresh");
    EXPECT_THAT(names(), testing::ElementsAre("target"));
    make_directories(directory_ / "fresh");
    write_file(directory_ / "fresh" / "file", "fresh");
    write_file(directory_ / "target" / "file", "target");
  }
}

TEST_F(ReplaceDirectoryTest, WhatMustNotBeLostGetsItsNameBack) {
  for (const Replacing replace : kWays) {
    const auto refuse = [](const fs::path&) { throw Error("somebody else's"); };
    EXPECT_EQ(error_message([&] { replace(directory_ / "fresh", directory_ / "target", refuse); }), "somebody else's");
    EXPECT_EQ(read_file(directory_ / "target" / "file"), "target");
    EXPECT_EQ(read_file(directory_ / "fresh" / "file"), "fresh");
    EXPECT_THAT(names(), testing::UnorderedElementsAre("fresh", "target"));
  }
}

}  // namespace
}  // namespace headshare
