#include "headshare/text/unicode/code_points.h"

#include <algorithm>

namespace headshare {

CodePoints::CodePoints(std::string_view text) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  count_ = std::count_if(text.begin(), text.end(), begins);
  if (static_cast<size_t>(count_) == text.size()) return;
  starts_.reserve(static_cast<size_t>(count_) + 1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins(text[i])) starts_.push_back(static_cast<uint32_t>(i));
  }
  starts_.push_back(static_cast<uint32_t>(text.size()));
}

}  // namespace headshare
