#include "headshare/train/append_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

TEST(AppendFileTest, GrowsAndIsThereAtOnce) {
  const TemporaryDirectory directory;
  AppendFile file(directory / "x");
  EXPECT_EQ(file.size(), 0u);
  file.append("one ");
  EXPECT_EQ(read_file(directory / "x"), "one ");
  AppendFile again(directory / "x");
  EXPECT_EQ(again.size(), 4u);
  again.append("two");
  again.sync();
  EXPECT_EQ(read_file(directory / "x"), "one two");
}

TEST(AppendFileTest, TruncatesAndGoesOnFromThere) {
  const TemporaryDirectory directory;
  AppendFile file(directory / "x");
  file.append("one two");
  file.truncate(4);
  file.append("three");
  EXPECT_EQ(file.size(), 9u);
  EXPECT_EQ(read_file(directory / "x"), "one three");
}

TEST(AppendFileTest, AFullDiskLeavesWholeRecords) {
  const TemporaryDirectory directory;
  AppendFile file(directory / "x");
  file.append("whole\n");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{10, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::string text = "no error";
  try {
    file.append("does not fit\n");
  } catch (const Error& error) {
    text = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, testing::HasSubstr((directory / "x").string()));
  EXPECT_THAT(text, testing::HasSubstr("cannot append 13 bytes"));
  EXPECT_EQ(read_file(directory / "x"), "whole\n");
  file.append("next\n");
  EXPECT_EQ(read_file(directory / "x"), "whole\nnext\n");
}

TEST(AppendFileTest, APathThatCannotBeOpenedIsNamed) {
  const TemporaryDirectory directory;
  try {
    AppendFile file(directory / "no" / "where");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "cannot open '" + (directory / "no" / "where").string() + "': No such file or directory");
  }
}

}  // namespace
}  // namespace headshare
