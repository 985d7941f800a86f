// Lets one process at a time work in a directory.
#pragma once

#include "headshare/base/files/file.h"
#include "headshare/base/files/made_directories.h"

namespace headshare {

class DirectoryLock {
 public:
  // Creates the directory with its parents and takes its lock (the file .lock). Throws Error when another process holds
  // the lock, or nothing can be written there.
  explicit DirectoryLock(fs::path path);

  // Leaves nothing of a mistake in the call: removes the lock that it created unless the directory was marked meanwhile
  // (output_mark.h), then the directories that it created and that nothing was put into.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  const fs::path& path() const { return path_; }

 private:
  bool take();

  fs::path path_;
  MadeDirectories made_;
  bool created_ = false;  // the lock
  int descriptor_ = -1;
};

}  // namespace headshare
