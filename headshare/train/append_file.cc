#include "headshare/train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {

AppendFile::AppendFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("open", errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error_number = errno;
    ::close(descriptor_);
    fail("look at", error_number);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::fail(const char* action, int error_number) const {
  throw Error(join_text("cannot ", action, " '", path_.string(), "': ", std::strerror(error_number)));
}

void AppendFile::append(std::string_view record) {
  size_t written = 0;
  while (written < record.size()) {
    const ssize_t part = ::write(descriptor_, record.data() + written, record.size() - written);
    if (part >= 0) {
      written += static_cast<size_t>(part);
    } else if (errno != EINTR) {
      const int error_number = errno;
      // Half a record would spoil the next one. Cutting a file back needs no space; should it fail all
      // the same, the write's error is still the one to report.
      [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
      throw Error(join_text("cannot append ", record.size(), " bytes to '", path_.string(), "' of ", size_,
                            " bytes: ", std::strerror(error_number)));
    }
  }
  size_ += record.size();
}

void AppendFile::truncate(uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail("cut", errno);
  size_ = size;
}

void AppendFile::sync() {
  if (::fsync(descriptor_) != 0) fail("write out", errno);
}

}  // namespace headshare
