// Decompresses gzip data, whose members follow each other.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace headshare {

// zlib's own reader takes whatever follows a member for padding when it is no member: the rest of a damaged file would
// be missing without a word.
class GzipMembers {
 public:
  // Gives up to so many compressed bytes; 0 at the end.
  using Source = std::function<size_t(char*, size_t)>;

  // Throws Error, which calls the data `name`, where there are bytes and they do not begin as a gzip file does.
  GzipMembers(std::string name, Source source);
  ~GzipMembers();
  GzipMembers(const GzipMembers&) = delete;
  GzipMembers& operator=(const GzipMembers&) = delete;

  // Returns up to `bytes` decompressed bytes; 0 at the end. Throws Error for data that is damaged, cut short or
  // followed by anything but members and zeros.
  size_t read(char* out, size_t bytes);

  // Counts the compressed bytes that were taken.
  uint64_t position() const { return given_ - stream_.avail_in; }

 private:
  bool refill();
  bool find_member();

  std::string name_;
  Source source_;
  std::vector<char> room_;
  z_stream stream_{};
  uint64_t given_ = 0;
  bool inside_ = false;  // a member
};

}  // namespace headshare
