#include "headshare/base/files/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/files/output_mark.h"
#include "headshare/base/files/unfinished.h"

namespace headshare {
namespace {

constexpr const char* kLockFile = ".lock";

}  // namespace

DirectoryLock::DirectoryLock(fs::path path) : path_(std::move(path)), made_(path_) {
  while (!take()) {
  }
}

// Returns false when another process removed the file between opening and locking.
bool DirectoryLock::take() {
  const fs::path lock = written_path(path_ / kLockFile);  // a link to nothing is refused: its target would stay behind
  created_ = !path_exists(lock);
  descriptor_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  HS_CHECK(descriptor_ >= 0, "cannot write in ", path_.string(), ": ", std::strerror(errno));
  const int reason = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (reason == 0 && names_open(lock, descriptor_)) return true;
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
