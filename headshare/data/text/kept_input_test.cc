#include "headshare/data/text/kept_input.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class KeptInputsTest : public testing::Test {
 protected:
  // Makes a pipe that gives `content` once.
  std::thread pipe(const std::string& content) const {
    HS_CHECK(::mkfifo((home_ / "pipe").c_str(), 0600) == 0, "no pipe");
    return std::thread([this, content] { write_pipe(content); });
  }
  void write_pipe(const std::string& content) const {
    std::FILE* file = std::fopen((home_ / "pipe").c_str(), "w");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(out_.path()), fs::directory_iterator()));
  }

  TemporaryDirectory home_;
  TemporaryDirectory out_;
  DataOptions options_;
};

TEST_F(KeptInputsTest, FilesStayWhatTheyAre) {
  options_.text = {(home_ / "a.txt").string()};
  const DataOptions before = options_;
  KeptInputs kept(out_.path(), &options_);
  EXPECT_EQ(options_.text, before.text);
  EXPECT_TRUE(kept.names().empty());
  EXPECT_EQ(files(), 0u);
}

TEST_F(KeptInputsTest, APipeIsCopiedUnderANameOfItsContent) {
  options_.validation_text = {(home_ / "pipe").string()};
  std::thread writer = pipe("some text\n");
  {
    KeptInputs kept(out_.path(), &options_);
    EXPECT_THAT(fs::path(options_.validation_text[0]).filename().string(), StartsWith("kept-input-"));
    EXPECT_EQ(read_file(options_.validation_text[0]), "some text\n");
    EXPECT_THAT(error_message([&] { kept.reading([&] { throw Error(options_.validation_text[0] + ":1: bad"); }); }),
                (home_ / "pipe").string() + ":1: bad");
  }
  writer.join();
  EXPECT_EQ(files(), 0u);  // nothing was begun
}

TEST_F(KeptInputsTest, WhatIsKeptStaysAndIsTakenAgain) {
  for (int call = 0; call < 2; ++call) {
    options_.text = {(home_ / "pipe").string()};
    std::thread writer = pipe("some text\n");
    KeptInputs kept(out_.path(), &options_);
    writer.join();
    if (call == 0) kept.keep();
    fs::remove(home_ / "pipe");
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_file(options_.text[0]), "some text\n");
}

TEST_F(KeptInputsTest, StandardInputIsReadOnce) {
  options_.text = {"-"};
  options_.test_text = {"-"};
  EXPECT_THAT(error_message([&] { KeptInputs(out_.path(), &options_); }), HasSubstr("only once"));
}

}  // namespace
}  // namespace headshare
