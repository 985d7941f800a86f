// For tests only, this gives the real data sets, temporary directories, a full disk, the messages of errors. It needs
// zlib (LINKS ZLIB::ZLIB) where read_test_data is used.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"

namespace headshare {

// Returns the folder with the published data sets: $HEADSHARE_DATA, else shared/data beside the repository. It need not
// exist: tests that need a file of it begin with HS_NEEDS_DATA(file).
inline fs::path test_data_folder() {
  const char* chosen = std::getenv("HEADSHARE_DATA");
  return chosen != nullptr ? fs::path(chosen) : fs::path(HEADSHARE_SOURCE_DIR) / "../shared/data";
}

// Skips the test, naming the missing file: HS_NEEDS_DATA("tinyshakespeare/input.txt.gz");
#define HS_NEEDS_DATA(name)                                               \
  if (!::headshare::fs::exists(::headshare::test_data_folder() / (name))) \
  GTEST_SKIP() << "no " << (::headshare::test_data_folder() / (name)).string() << "; set HEADSHARE_DATA"

// Returns a file of the data folder; .gz files are unpacked.
inline std::string read_test_data(const std::string& name) {
  const fs::path path = test_data_folder() / name;
  gzFile file = gzopen(path.c_str(), "rb");
  HS_CHECK(file != nullptr, "cannot open ", path.string());
  std::string content;
  char buffer[1 << 16];
  int count = 0;
  while ((count = gzread(file, buffer, sizeof buffer)) > 0) content.append(buffer, static_cast<size_t>(count));
  gzclose(file);
  HS_CHECK(count == 0, "cannot unpack ", path.string());
  return content;
}

// This is a new directory, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "headshare-test-XXXXXX").string();
    HS_CHECK(::mkdtemp(name.data()) != nullptr, "cannot create ", name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// Imitates a full disk: until it is destroyed every write past `bytes` of a file fails, for root too.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

// Returns the message of the Error that `action` throws; "no error" when it returns.
inline std::string error_message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace headshare
