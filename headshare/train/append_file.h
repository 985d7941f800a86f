// This file only grows, record by record.
#pragma once

#include <cstdint>
#include <string_view>

#include "headshare/base/files/file.h"

namespace headshare {

class AppendFile {
 public:
  // Opens `path` for appending, and creates it when it is missing. Throws Error naming the path.
  explicit AppendFile(fs::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Writes one record at once: a reader, and a program killed right after, find all of it in the file.
  // When that fails (a full disk) the record is taken back whole and Error names path, reason and size.
  void append(std::string_view record);

  // Cuts the file to its first `size` bytes.
  void truncate(uint64_t size);

  // Waits until what was written is on the disk: before a checkpoint counts on it.
  void sync();

  uint64_t size() const { return size_; }
  const fs::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* action, int error_number) const;

  fs::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace headshare
