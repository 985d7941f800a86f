// For this folder's tests only: a directory per test.
#pragma once

#include <fstream>
#include <string>

#include "headshare/base/testing.h"

namespace headshare {

// Gives each test an empty directory that is removed after it.
class DirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("headshare_data_test_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    make_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Writes a file with this content; it is not flushed to disk, as fuzzing writes thousands.
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return (directory_ / name).string();
  }

  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

}  // namespace headshare
