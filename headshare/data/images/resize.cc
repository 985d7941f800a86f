#include "headshare/data/images/resize.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr int kWeightBits = 22;

// The weights of the pixels first .. first + weights.size() - 1, which one pixel of the result is made of.
struct Blend {
  int64_t first = 0;
  std::vector<int32_t> weights = {};
};

std::vector<Blend> blends(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0), inverse = 1 / support;
  std::vector<Blend> list;
  for (int64_t place = 0; place < to; ++place) {
    const double centre = (static_cast<double>(place) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    std::vector<double> shares;
    double sum = 0;
    for (int64_t at = first; at < end; ++at) {
      shares.push_back(std::max(1 - std::abs((static_cast<double>(at) - centre + 0.5) * inverse), 0.0));
      sum += shares.back();
    }
    Blend blend{.first = first};
    for (const double share : shares) {
      blend.weights.push_back(static_cast<int32_t>(0.5 + share / sum * (1 << kWeightBits)));
    }
    list.push_back(std::move(blend));
  }
  return list;
}

uint8_t rounded(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// Resizes the middle axis of [outer, from, inner] to `to`.
std::vector<uint8_t> resized_axis(const std::vector<uint8_t>& pixels, size_t outer, int64_t from, size_t inner,
                                  int64_t to) {
  if (from == to) return pixels;
  std::vector<uint8_t> made(outer * static_cast<size_t>(to) * inner);
  const std::vector<Blend> all = blends(from, to);
  uint8_t* out = made.data();
  std::vector<int64_t> sums(inner);
  for (size_t piece = 0; piece < outer; ++piece) {
    const uint8_t* begin = pixels.data() + piece * static_cast<size_t>(from) * inner;
    for (const Blend& blend : all) {
      std::fill(sums.begin(), sums.end(), 0);
      const uint8_t* in = begin + static_cast<size_t>(blend.first) * inner;
      for (const int64_t weight : blend.weights) {
        for (size_t at = 0; at < inner; ++at) sums[at] += weight * in[at];
        in += inner;
      }
      for (size_t at = 0; at < inner; ++at) *out++ = rounded(sums[at]);
    }
  }
  return made;
}

Image cut_middle(const Image& image, int64_t size) {
  const auto margin = [size](int64_t side) { return std::lrint(static_cast<double>(side - size) / 2); };
  const int64_t top = margin(image.height), left = margin(image.width);
  Image made{.height = size, .width = size, .channels = image.channels};
  made.pixels.reserve(image_bytes(size, size, image.channels));
  for (int64_t row = 0; row < size; ++row) {
    const auto begin = image.pixels.begin() + ((top + row) * image.width + left) * image.channels;
    made.pixels.insert(made.pixels.end(), begin, begin + size * image.channels);
  }
  return made;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width) {
  HS_CHECK(height > 0 && width > 0, "an image cannot be resized to ", width, " x ", height, " pixels");
  Image made{.height = height, .width = width, .channels = image.channels};
  const auto rows = static_cast<size_t>(image.height);
  made.pixels = resized_axis(image.pixels, rows, image.width, static_cast<size_t>(image.channels), width);  // [H, W, C]
  made.pixels = resized_axis(made.pixels, 1, image.height, image_bytes(1, width, image.channels), height);
  return made;
}

Image squared(Image image, int64_t size) {
  if (image.height == size && image.width == size) return image;
  if (image.height <= image.width) {
    image = resized(image, size, size * image.width / image.height);
  } else {
    image = resized(image, size * image.height / image.width, size);
  }
  return cut_middle(image, size);
}

Image with_channels(Image image, int64_t channels, const std::string& name) {
  if (image.channels == channels) return image;
  HS_CHECK(image.channels == 1 && channels == 3, name, " has ", image.channels, " channels (",
           image.channels == 1 ? "grey" : "colour", "), and images of ", channels, channels == 1 ? " (grey)" : "",
           " are read here; ", channels == 1 ? "make it grey, or train with --channels 3" : "train with --channels 3");
  std::vector<uint8_t> pixels;
  pixels.reserve(3 * image.pixels.size());
  for (const uint8_t grey : image.pixels) pixels.insert(pixels.end(), 3, grey);
  image.channels = channels;
  image.pixels = std::move(pixels);
  return image;
}

}  // namespace headshare
