// Finds where code points stand in UTF-8 text: files written by Python count positions in code points.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headshare {

class CodePoints {
 public:
  // `text` is valid UTF-8 of less than 4 GiB.
  explicit CodePoints(std::string_view text);

  int64_t count() const { return count_; }

  // Returns the byte where code point `index` begins; the length of the text for index == count(). Requires 0 <= index
  // <= count().
  size_t byte(int64_t index) const {
    return starts_.empty() ? static_cast<size_t>(index) : starts_[static_cast<size_t>(index)];
  }

 private:
  int64_t count_ = 0;
  std::vector<uint32_t> starts_;  // empty when every code point is one byte
};

}  // namespace headshare
