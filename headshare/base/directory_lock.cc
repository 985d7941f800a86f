#include "headshare/base/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/output_mark.h"

namespace headshare {
namespace {

constexpr const char* kLockFile = ".lock";

}  // namespace

DirectoryLock::DirectoryLock(fs::path path) : path_(std::move(path)), made_(path_) {
  while (!take()) {
  }
}

// False when another process removed the file between opening and locking.
bool DirectoryLock::take() {
  const fs::path lock = path_ / kLockFile;
  created_ = !path_exists(lock);
  descriptor_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  HS_CHECK(descriptor_ >= 0, "cannot write in ", path_.string(), ": ", std::strerror(errno));
  const int reason = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  struct stat ours {};
  struct stat there {};
  const bool same = ::fstat(descriptor_, &ours) == 0 && ::stat(lock.c_str(), &there) == 0 &&
                    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  if (reason == 0 && same) return true;
  ::close(descriptor_);
  HS_CHECK(reason != EWOULDBLOCK, path_.string(),
           " is in use by another headshare process; wait for it or choose another --out");
  HS_CHECK(reason == 0, "cannot lock ", lock.string(), ": ", std::strerror(reason));
  return false;
}

DirectoryLock::~DirectoryLock() {
  std::error_code ignored;
  if (created_ && !fs::exists(path_ / kMarkFile, ignored)) fs::remove(path_ / kLockFile, ignored);
  ::close(descriptor_);
}

}  // namespace headshare
