#include "headshare/data/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"

namespace headshare {

ByteStream::ByteStream(std::string input, Decompress decompress) {
  if (input == "-") {
    name_ = "standard input";
    descriptor_ = STDIN_FILENO;
    return;
  }
  name_ = std::move(input);
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  HS_CHECK(descriptor_ >= 0, "cannot open ", name_, ": ", std::strerror(errno));
  if (fs::is_directory(name_)) {
    ::close(descriptor_);
    throw Error(join_text("cannot read ", name_, ": it is a directory, a file was expected"));
  }
  if (decompress == Decompress::kNo || !name_.ends_with(".gz")) return;
  try {
    gzip_ = std::make_unique<GzipMembers>(name_, [this](char* out, size_t bytes) { return read_plain(out, bytes); });
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ByteStream::~ByteStream() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

size_t ByteStream::read(char* out, size_t bytes) {
  size_t filled = 0;
  while (filled < bytes) {
    const size_t count =
        gzip_ != nullptr ? gzip_->read(out + filled, bytes - filled) : read_plain(out + filled, bytes - filled);
    if (count == 0) break;
    filled += count;
  }
  return filled;
}

size_t ByteStream::read_plain(char* out, size_t bytes) {
  while (true) {
    const ssize_t count = ::read(descriptor_, out, bytes);
    if (count < 0 && errno == EINTR) continue;
    HS_CHECK(count >= 0, "cannot read ", name_, " after ", count_, " bytes: ", std::strerror(errno));
    count_ += static_cast<uint64_t>(count);
    return static_cast<size_t>(count);
  }
}

uint64_t ByteStream::position() const { return gzip_ != nullptr ? gzip_->position() : count_; }

std::string read_input(const std::string& input, size_t most) {
  constexpr size_t kPiece = size_t{1} << 16;
  ByteStream stream(input);
  std::string content;
  size_t count = kPiece;
  while (count == kPiece) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    count = stream.read(content.data() + before, kPiece);
    content.resize(before + count);
    HS_CHECK(content.size() <= most, stream.name(), " has more than ", most, " bytes, too many to be read at once");
  }
  return content;
}

}  // namespace headshare
