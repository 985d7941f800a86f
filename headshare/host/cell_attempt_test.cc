#include "headshare/host/cell_attempt.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

const CellKey kKey{.variant = "mha", .setting = "", .seed = 1};

constexpr const char* kId = "0123456789abcdef";

class CellAttemptTest : public testing::Test {
 protected:
  fs::path begin(int64_t number) {
    return begin_attempt(home_.path(), {.key = kKey, .comparison = kId, .number = number});
  }
  fs::path cells() const { return home_.path() / "cells"; }

  static void write_checkpoint(const fs::path& run, const std::string& name, const std::string& link) {
    fs::create_directories(run / "checkpoints" / name);
    write_file(run / "checkpoints" / name / "model.safetensors", "weights of " + name);
    fs::remove(run / "checkpoints" / link);
    fs::create_directory_symlink(name, run / "checkpoints" / link);
  }
  static ino_t identity(const fs::path& file) {
    struct stat status {};
    EXPECT_EQ(::stat(file.c_str(), &status), 0) << file;
    return status.st_ino;
  }

  const TemporaryDirectory home_;
};

TEST_F(CellAttemptTest, TheFirstOneIsEmpty) {
  EXPECT_EQ(begin(1).filename(), ".mha-seed1.attempt-01234567-1");
  EXPECT_TRUE(fs::is_empty(begin(2)));
}

TEST_F(CellAttemptTest, ALaterOneGoesOnFromTheCheckpointsOfTheOneBefore) {
  const fs::path first = begin(1);
  write_checkpoint(first, "step-00000002", "last");
  write_checkpoint(first, "best-00000002", "best");
  write_file(first / "metrics.jsonl", "{\"step\": 1}\n");
  write_file(first / "result.json", "{}");
  fs::create_directories(first / "glue-cola" / "lr-0.1");
  write_checkpoint(first / "glue-cola" / "lr-0.1", "step-00000004", "last");
  fs::create_directories(first / "checkpoints" / "step-00000003.partial-7");
  write_file(first / ".lock", "");
  const auto weights = identity(first / "checkpoints" / "step-00000002" / "model.safetensors");
  const auto metrics = identity(first / "metrics.jsonl");

  const fs::path second = begin(3);
  EXPECT_FALSE(fs::exists(first));  // whoever works there ends
  EXPECT_EQ(fs::read_symlink(second / "checkpoints" / "last"), "step-00000002");
  EXPECT_EQ(read_file(second / "checkpoints" / "best" / "model.safetensors"), "weights of best-00000002");
  EXPECT_EQ(identity(second / "checkpoints" / "step-00000002" / "model.safetensors"), weights);
  EXPECT_NE(identity(second / "metrics.jsonl"), metrics);  // what grows is no file of two attempts
  EXPECT_TRUE(fs::exists(second / "glue-cola" / "lr-0.1" / "checkpoints" / "last" / "model.safetensors"));
  EXPECT_FALSE(fs::exists(second / "checkpoints" / "step-00000003.partial-7") || fs::exists(second / ".lock"));
}

TEST_F(CellAttemptTest, AnotherComparisonsIsNotGoneOnWith) {
  const fs::path other = begin_attempt(home_.path(), {.key = kKey, .comparison = "another", .number = 1});
  write_checkpoint(other, "step-00000002", "last");
  EXPECT_TRUE(fs::is_empty(begin(2)));
  sweep_attempts(home_.path(), kKey);
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(CellAttemptTest, WhatAnEarlierVersionLeftUnfinishedGoesOn) {
  write_checkpoint(cells() / "mha-seed1", "step-00000002", "last");
  write_file(cells() / "mha-seed1" / "plan.json", "{}");
  const fs::path attempt = begin(1);
  EXPECT_TRUE(fs::exists(attempt / "checkpoints" / "last" / "model.safetensors"));
  EXPECT_FALSE(fs::exists(cells() / "mha-seed1"));
}

TEST_F(CellAttemptTest, TheFirstWhoPublishesWins) {
  const fs::path late = begin(1);
  write_file(late / "cell.json", "late");
  const fs::path fast = cells() / ".mha-seed1.attempt-01234567-2";
  fs::create_directories(fast);
  write_file(fast / "cell.json", "fast");
  EXPECT_EQ(newest_attempt(home_.path(), kKey, kId), fast);
  EXPECT_TRUE(publish_attempt(fast, home_.path(), kKey));
  EXPECT_FALSE(publish_attempt(late, home_.path(), kKey));
  EXPECT_EQ(read_file(cells() / "mha-seed1" / "cell.json"), "fast");
  sweep_attempts(home_.path(), kKey);
  EXPECT_FALSE(fs::exists(late));
  EXPECT_TRUE(is_finished(home_.path(), kKey));
}

TEST_F(CellAttemptTest, AFinishedCellKeepsItsName) {
  fs::create_directories(cells() / "mha-seed1");
  write_file(cells() / "mha-seed1" / "cell.json", "done");
  EXPECT_TRUE(fs::is_empty(begin(1)));
  EXPECT_TRUE(is_finished(home_.path(), kKey));
}

TEST_F(CellAttemptTest, AFolderThatCannotBeMadeIsNamed) {
  write_file(cells().parent_path() / "cells", "a file");
  EXPECT_THAT(error_message([&] { begin(1); }), HasSubstr("cells"));
}

}  // namespace
}  // namespace headshare
