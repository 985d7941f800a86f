// One process at a time in a directory.
#pragma once

#include "headshare/base/file.h"

namespace headshare {

class DirectoryLock {
 public:
  // Creates the directory with its parents and takes its lock (the file .lock). Throws Error when another process holds
  // the lock, or nothing can be written there.
  explicit DirectoryLock(fs::path path);

  // Removes a directory that it created and that nothing was put into: a mistake in the call leaves nothing.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool created_;
  int descriptor_ = -1;
};

}  // namespace headshare
