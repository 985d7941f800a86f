// An image is a table of pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headshare {

struct Image {
  int64_t height = 0, width = 0;
  int64_t channels = 0;              // 1: grey; 3: red, green and blue
  std::vector<uint8_t> pixels = {};  // [height, width, channels]

  bool operator==(const Image&) const = default;
};

// Returns how many bytes the pixels of such an image take.
inline size_t image_bytes(int64_t height, int64_t width, int64_t channels) {
  return static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels);
}

}  // namespace headshare
