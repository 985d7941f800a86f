// A ByteReader reads a binary file of another program front to back, and checks every length against what is left.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"

namespace headshare {

class ByteReader {
 public:
  // `content` must outlive the reader; `where` names the file in errors.
  ByteReader(std::string_view content, std::string where) : content_(content), where_(std::move(where)) {}

  // Returns a number as it lies in memory; files are little-endian, and so are the machines that headshare runs on.
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view take(uint64_t bytes) {
    if (bytes > left()) fail("it ends early: it is not whole");
    const std::string_view taken = content_.substr(place_, bytes);
    place_ += bytes;
    return taken;
  }

  uint64_t place() const { return place_; }
  uint64_t left() const { return content_.size() - place_; }
  [[noreturn]] void fail(const std::string& what) const { throw DamagedFile(join_text(where_, ": ", what)); }

 private:
  std::string_view content_;
  std::string where_;
  uint64_t place_ = 0;
};

}  // namespace headshare
