#include "headshare/base/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"

namespace headshare {

DirectoryLock::DirectoryLock(fs::path path) : path_(std::move(path)), created_(!path_exists(path_)) {
  make_directories(path_);
  const fs::path lock = path_ / ".lock";
  descriptor_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  HS_CHECK(descriptor_ >= 0, "cannot write in ", path_.string(), ": ", std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    HS_CHECK(reason == EWOULDBLOCK, "cannot lock ", lock.string(), ": ", std::strerror(reason));
    throw Error(
        join_text(path_.string(), " is in use by another headshare process; wait for it or choose another --out"));
  }
}

DirectoryLock::~DirectoryLock() {
  std::error_code ignored;
  const auto entries = std::distance(fs::directory_iterator(path_, ignored), fs::directory_iterator());
  if (created_ && entries == 1) {  // the lock
    fs::remove(path_ / ".lock", ignored);
    fs::remove(path_, ignored);
  }
  ::close(descriptor_);
}

}  // namespace headshare
