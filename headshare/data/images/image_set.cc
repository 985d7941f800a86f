#include "headshare/data/images/image_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/base/shuffle.h"
#include "headshare/data/hash.h"
#include "headshare/data/images/resize.h"

namespace headshare {
namespace {

// Every run holds out the same images, whatever its seed.
constexpr uint64_t kHeldOutSeed = 0;

}  // namespace

std::string ImageSet::fingerprint() const {
  if (empty()) return "";
  ContentHash hash;
  hash.update(join_text(height, " ", width, " ", channels, " ", size(), "\n"));
  hash.update(pixels.data(), pixels.size());
  hash.update(labels.data(), labels.size() * sizeof(int64_t));
  return hash.hex();
}

ImageSet fitted(ImageSet set, int64_t size, int64_t channels, const std::string& name) {
  if (set.height == size && set.width == size && set.channels == channels) return set;
  ImageSet made{.height = size, .width = size, .channels = channels, .labels = set.labels};
  made.pixels.reserve(image_bytes(size, size, channels) * set.labels.size());
  for (int64_t index = 0; index < set.size(); ++index) {
    const std::span<const uint8_t> pixels = set.image(index);
    Image image{.height = set.height,
                .width = set.width,
                .channels = set.channels,
                .pixels = std::vector<uint8_t>(pixels.begin(), pixels.end())};
    image = squared(with_channels(std::move(image), channels, name), size);
    made.pixels.insert(made.pixels.end(), image.pixels.begin(), image.pixels.end());
  }
  return made;
}

ImageSet subset(const ImageSet& set, std::span<const int64_t> chosen) {
  ImageSet made{.height = set.height, .width = set.width, .channels = set.channels};
  made.pixels.reserve(image_bytes(set.height, set.width, set.channels) * chosen.size());
  for (const int64_t index : chosen) {
    const std::span<const uint8_t> pixels = set.image(index);
    made.pixels.insert(made.pixels.end(), pixels.begin(), pixels.end());
    made.labels.push_back(set.labels[static_cast<size_t>(index)]);
  }
  return made;
}

TwoSets held_out(const ImageSet& set, double fraction) {
  std::map<int64_t, std::vector<int64_t>> of_class;
  for (int64_t index = 0; index < set.size(); ++index) {
    of_class[set.labels[static_cast<size_t>(index)]].push_back(index);
  }
  std::vector<int64_t> kept, out;
  const uint64_t key = stream_key(kHeldOutSeed, "held-out images");
  for (auto& [label, images] : of_class) {
    Philox random(stream_key(key, static_cast<uint64_t>(label)));
    shuffle(&images, &random);
    const auto wanted = std::llrint(fraction * static_cast<double>(images.size()));
    const auto count = std::min<int64_t>(wanted, static_cast<int64_t>(images.size()) - 1);
    out.insert(out.end(), images.begin(), images.begin() + count);
    kept.insert(kept.end(), images.begin() + count, images.end());
  }
  std::sort(kept.begin(), kept.end());
  std::sort(out.begin(), out.end());
  return {.first = subset(set, kept), .second = subset(set, out)};
}

PixelScale pixel_scale(const ImageSet& set) {
  PixelScale scale;
  const auto channels = static_cast<size_t>(set.channels);
  std::vector<std::array<int64_t, 256>> counts(channels);
  for (size_t at = 0; at < set.pixels.size(); ++at) ++counts[at % channels][set.pixels[at]];
  for (const auto& count : counts) {
    double number = 0, sum = 0, squares = 0;
    for (size_t value = 0; value < count.size(); ++value) {
      const auto times = static_cast<double>(count[value]);
      const double pixel = static_cast<double>(value) / 255;
      number += times;
      sum += times * pixel;
      squares += times * pixel * pixel;
    }
    const double mean = number > 0 ? sum / number : 0;
    const double variance = number > 0 ? squares / number - mean * mean : 0;
    scale.mean.push_back(mean);
    scale.deviation.push_back(variance > 1e-12 ? std::sqrt(variance) : 1);
  }
  return scale;
}

}  // namespace headshare
