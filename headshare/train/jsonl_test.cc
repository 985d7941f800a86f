#include "headshare/train/jsonl.h"

#include <gmock/gmock.h>

#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

class JsonlTest : public testing::Test {
 protected:
  std::string resumed(const std::string& content, int64_t step) {
    write_file(path_, content);
    JsonlWriter::resume(path_, step).write({{"event", "resumed"}});
    return read_file(path_);
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "metrics.jsonl";
};

constexpr char kResumed[] = "{\"event\":\"resumed\"}\n";

TEST_F(JsonlTest, WritesALinePerObjectAtOnce) {
  JsonlWriter writer(path_);
  writer.write({{"step", 1}, {"loss", 2.5}});
  EXPECT_EQ(read_file(path_), "{\"loss\":2.5,\"step\":1}\n");
  writer.write({{"step", 2}, {"text", "a\nb"}});
  writer.sync();
  EXPECT_EQ(read_file(path_), "{\"loss\":2.5,\"step\":1}\n{\"step\":2,\"text\":\"a\\nb\"}\n");
}

TEST_F(JsonlTest, EveryLineIsValidJson) {
  JsonlWriter writer(path_);
  writer.write({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"text", "a\xFF"}});
  EXPECT_EQ(read_file(path_), "{\"loss\":null,\"text\":\"a\uFFFD\"}\n");
}

TEST_F(JsonlTest, ANewRunDoesNotMixWithAnEarlierOne) {
  write_file(path_, "{\"step\":1}\n");
  try {
    JsonlWriter writer(path_);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path_.string()));
    EXPECT_THAT(error.what(), testing::HasSubstr("11 bytes of an earlier run"));
  }
  EXPECT_EQ(read_file(path_), "{\"step\":1}\n");
}

TEST_F(JsonlTest, ResumingDropsWhatTheRunWillWriteAgain) {
  const std::string first = "{\"event\":\"start\"}\n{\"step\":10}\n{\"step\":20}\n{\"event\":\"checkpoint\"}\n";
  EXPECT_EQ(resumed(first + "{\"step\":30}\n{\"event\":\"late\"}\n{\"step\":40}\n", 20), first + kResumed);
  EXPECT_EQ(resumed(first, 20), first + kResumed);
  EXPECT_EQ(resumed("{\"step\":10}\n", 0), kResumed);
}

TEST_F(JsonlTest, ResumingDropsAnUnfinishedLine) {
  EXPECT_EQ(resumed("{\"step\":10}\n{\"st", 20), std::string("{\"step\":10}\n") + kResumed);
  EXPECT_EQ(resumed("{\"step\":10}\n{\"step\":20}", 20), std::string("{\"step\":10}\n") + kResumed);
}

TEST_F(JsonlTest, ResumingWithoutAFileStartsOne) {
  JsonlWriter::resume(path_, 5).write({{"step", 6}});
  EXPECT_EQ(read_file(path_), "{\"step\":6}\n");
}

TEST_F(JsonlTest, ADamagedLineIsNamedAndNothingIsLost) {
  const std::string content = "{\"step\":1}\nnot json\n{\"step\":2}\n";
  write_file(path_, content);
  try {
    JsonlWriter::resume(path_, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path_.string() + ":2: not a JSON object: 'not json'"));
  }
  EXPECT_EQ(read_file(path_), content);
}

}  // namespace
}  // namespace headshare
