#include "headshare/base/files/output_file.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  std::string put(const std::string& name, Overwrite overwrite, const std::string& mark = "") const {
    return error_message([&] { OutputFile(home_ / name, overwrite, {}, mark).write("new"); });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(home_.path())) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryDirectory home_;
};

TEST_F(OutputFileTest, ReplacesWhatExistsOnlyWhenAsked) {
  EXPECT_EQ(put("a", Overwrite::kNo), "no error");
  EXPECT_THAT(put("a", Overwrite::kNo), AllOf(HasSubstr(home_ / "a"), HasSubstr("--overwrite replaces it")));
  write_file(home_ / "a", "old");
  EXPECT_EQ(put("a", Overwrite::kYes), "no error");
  EXPECT_EQ(read_file(home_ / "a"), "new");
  EXPECT_THAT(names(), ElementsAre("a"));
  struct stat status {};
  ASSERT_EQ(::stat((home_ / "a").c_str(), &status), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
}

TEST_F(OutputFileTest, OnlyRegularFilesAreReplaced) {
  make_directories(home_ / "directory");
  ASSERT_EQ(::mkfifo((home_ / "pipe").c_str(), 0666), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string where = home_ / "socket";
  ASSERT_LT(where.size(), sizeof address.sun_path);
  where.copy(address.sun_path, where.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  fs::create_symlink("/dev/null", home_ / "null");
  fs::create_symlink("pipe", home_ / "to-pipe");
  for (const Overwrite overwrite : {Overwrite::kNo, Overwrite::kYes}) {
    EXPECT_THAT(put("directory", overwrite), HasSubstr("is a directory; name a file in it"));
    EXPECT_THAT(put("pipe", overwrite), HasSubstr("is a named pipe, which is not replaced"));
    EXPECT_THAT(put("to-pipe", overwrite), HasSubstr("is a named pipe, which is not replaced"));
    EXPECT_THAT(put("socket", overwrite), HasSubstr("is a socket, which is not replaced"));
    EXPECT_THAT(put("null", overwrite), HasSubstr("is a device, which is not replaced"));
  }
  EXPECT_TRUE(fs::is_fifo(home_ / "pipe"));
  EXPECT_TRUE(fs::is_socket(home_ / "socket"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(error_message([&] { write_file(home_ / "pipe", "x"); }), HasSubstr("it is a named pipe"));
  EXPECT_THAT(names(), ElementsAre("directory", "null", "pipe", "socket", "to-pipe"));
}

TEST_F(OutputFileTest, LinksStayAndLeadToWhatIsWritten) {
  make_directories(home_ / "far");
  write_file(home_ / "far" / "target", "old");
  fs::create_symlink("far/target", home_ / "link");
  EXPECT_THAT(put("link", Overwrite::kNo), HasSubstr("exists already"));
  EXPECT_EQ(put("link", Overwrite::kYes), "no error");
  EXPECT_TRUE(fs::is_symlink(home_ / "link"));
  EXPECT_EQ(read_file(home_ / "far" / "target"), "new");
  write_file(home_ / "link", "newer");
  EXPECT_TRUE(fs::is_symlink(home_ / "link"));
  EXPECT_EQ(read_file(home_ / "far" / "target"), "newer");
  fs::create_symlink("nowhere", home_ / "dangling");
  fs::create_symlink("loop", home_ / "loop");
  for (const char* name : {"dangling", "loop"}) {
    for (const Overwrite overwrite : {Overwrite::kNo, Overwrite::kYes}) {
      EXPECT_THAT(put(name, overwrite), AllOf(HasSubstr(home_ / name), HasSubstr("symbolic link"))) << name;
    }
    EXPECT_THAT(error_message([&] { write_file(home_ / name, "x"); }), HasSubstr("symbolic link")) << name;
  }
  EXPECT_THAT(names(), ElementsAre("dangling", "far", "link", "loop"));
}

TEST_F(OutputFileTest, AMarkTellsOurFilesFromOthers) {
  write_file(home_ / "ours", "<meta mark> old");
  EXPECT_EQ(put("ours", Overwrite::kYes, "<meta mark>"), "no error");
  write_file(home_ / "theirs", "their own");
  write_file(home_ / "late", std::string(5000, ' ') + "<meta mark>");
  write_file(home_ / "empty", "");
  EXPECT_EQ(put("empty", Overwrite::kYes, "<meta mark>"), "no error");
  for (const char* name : {"theirs", "late"}) {
    EXPECT_THAT(put(name, Overwrite::kYes, "<meta mark>"), HasSubstr("was not written by headshare")) << name;
  }
  EXPECT_EQ(read_file(home_ / "theirs"), "their own");
}

TEST_F(OutputFileTest, WhatAppearsMeanwhileStays) {
  const OutputFile out(home_ / "a", Overwrite::kNo, {});
  write_file(home_ / "a", "somebody else's");
  EXPECT_THAT(error_message([&] { out.write("new"); }), HasSubstr("appeared during this call"));
  EXPECT_EQ(read_file(home_ / "a"), "somebody else's");
  const OutputFile over(home_ / "b", Overwrite::kYes, {}, "<mark>");
  write_file(home_ / "b", "somebody else's");
  EXPECT_THAT(error_message([&] { over.write("new"); }), HasSubstr("was not written by headshare"));
  const OutputFile pipe(home_ / "c", Overwrite::kYes, {});
  ASSERT_EQ(::mkfifo((home_ / "c").c_str(), 0666), 0);
  EXPECT_THAT(error_message([&] { pipe.write("new"); }), HasSubstr("is a named pipe"));
  EXPECT_THAT(names(), ElementsAre("a", "b", "c"));
}

TEST_F(OutputFileTest, AFailureLeavesWhatWasThere) {
  write_file(home_ / "a", "old");
  {
    const FileSizeLimit limit(1000);
    const std::string text =
        error_message([&] { OutputFile(home_ / "a", Overwrite::kYes, {}).write(std::string(5000, 'y')); });
    EXPECT_THAT(text, AllOf(HasSubstr(home_ / "a"), HasSubstr("File too large"), HasSubstr("stays")));
    EXPECT_THAT(error_message([&] { OutputFile(home_ / "b", Overwrite::kNo, {}).write(std::string(5000, 'y')); }),
                HasSubstr("File too large"));
  }
  EXPECT_EQ(read_file(home_ / "a"), "old");
  EXPECT_THAT(put("no/where", Overwrite::kNo), HasSubstr("there is no directory " + (home_ / "no").string()));
  EXPECT_THAT(put(std::string(300, 'n'), Overwrite::kNo), HasSubstr("too long"));
  EXPECT_THAT(error_message([] { OutputFile("", Overwrite::kYes, {}); }), HasSubstr("empty"));
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, AnInputIsNoOutput) {
  write_file(home_ / "text", "old");
  fs::create_symlink("text", home_ / "link");
  for (const Overwrite overwrite : {Overwrite::kNo, Overwrite::kYes}) {
    for (const InputPaths& inputs : {InputPaths{"-", home_ / "text"}, InputPaths{home_.path()}}) {
      EXPECT_THAT(error_message([&] { OutputFile(home_ / "link", overwrite, inputs); }), HasSubstr("is read by"));
      EXPECT_NO_THROW(OutputFile(home_ / "new", overwrite, inputs));
    }
  }
  EXPECT_NO_THROW(OutputFile(home_ / "link", Overwrite::kYes, {"-", home_ / "other", ""}));
  const OutputFile out(home_ / "new", Overwrite::kYes, {home_ / "text"});
  fs::create_hard_link(home_ / "text", home_ / "new");
  EXPECT_THAT(error_message([&] { out.write("new"); }), HasSubstr("is read by"));
  EXPECT_EQ(read_file(home_ / "text"), "old");
}

TEST_F(OutputFileTest, DirectoriesAndFreshFilesWithPartialNamesStay) {
  make_directories(home_ / "a.partial-1000000000" / "deep");
  write_file(home_ / "a.partial-1000000001", "theirs");
  write_file(home_ / "a.partial-1000000002", "half");
  fs::last_write_time(home_ / "a.partial-1000000000", fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(home_ / "a.partial-1000000002", fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(put("a", Overwrite::kNo), "no error");
  EXPECT_THAT(names(), ElementsAre("a", "a.partial-1000000000", "a.partial-1000000001"));
}

}  // namespace
}  // namespace headshare
