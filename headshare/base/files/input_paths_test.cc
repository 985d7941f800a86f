#include "headshare/base/files/input_paths.h"

#include <fcntl.h>
#include <unistd.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

class InputPathsTest : public testing::Test {
 protected:
  InputPathsTest() {
    make_directories(home_ / "model" / "deep");
    for (const char* name : {"text", "model/weights", "model/deep/notes", "blob"}) write_file(home_ / name, "x");
    fs::create_symlink("../blob", home_ / "model" / "tokenizer");
    fs::create_directory_symlink("model", home_ / "link");
  }

  TemporaryDirectory home_;
};

TEST_F(InputPathsTest, ADirectoryStandsForItsFilesUnderWhateverName) {
  EXPECT_TRUE(reads_file({"", home_ / "none", home_ / "text"}, home_ / "model" / ".." / "text"));
  for (const char* input : {"model", "link", "model/"}) {
    for (const char* file : {"model/weights", "link/weights", "model/tokenizer", "blob"}) {
      EXPECT_TRUE(reads_file({home_ / input}, home_ / file)) << input << " " << file;
    }
    for (const char* file : {"text", "model/new", "model/deep/notes"}) {
      EXPECT_FALSE(reads_file({home_ / input}, home_ / file)) << input << " " << file;
    }
  }
  EXPECT_FALSE(reads_file({}, home_ / "text"));
}

TEST_F(InputPathsTest, ADirectoryIsReadWhereAnInputLiesInIt) {
  for (const char* input : {"model", "link", "model/weights", "model/deep/notes"}) {
    EXPECT_TRUE(reads_within({home_ / "none", home_ / input}, home_ / "link")) << input;
    EXPECT_FALSE(reads_within({home_ / input, ""}, home_ / "model" / "none")) << input;
  }
  EXPECT_FALSE(reads_within({home_ / "model"}, home_ / "model" / "deep"));
  EXPECT_FALSE(reads_within({home_ / "text", home_.path()}, home_ / "model"));
}

TEST_F(InputPathsTest, StandardInputMayBeAFile) {
  const int before = ::dup(STDIN_FILENO);
  const int text = ::open((home_ / "text").c_str(), O_RDONLY | O_CLOEXEC);
  ::dup2(text, STDIN_FILENO);
  EXPECT_TRUE(reads_file({"-"}, home_ / "text"));
  EXPECT_FALSE(reads_file({"-"}, home_ / "blob"));
  ::dup2(before, STDIN_FILENO);
  EXPECT_FALSE(reads_file({"-"}, home_ / "text"));
  for (const int descriptor : {before, text}) ::close(descriptor);
}

}  // namespace
}  // namespace headshare
