// An ImageSet holds one part of the data: images of one size in RAM, each with the number of its class.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headshare/data/images/image.h"

namespace headshare {

struct ImageSet {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels = {};  // [N, height, width, channels]
  std::vector<int64_t> labels = {};  // [N]

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  bool empty() const { return labels.empty(); }
  std::span<const uint8_t> image(int64_t index) const {
    const size_t bytes = image_bytes(height, width, channels);
    return std::span(pixels).subspan(static_cast<size_t>(index) * bytes, bytes);
  }

  // Returns a hash of the size, the pixels and the labels; "" of no image.
  std::string fingerprint() const;
};

// ImageData has the parts of the data; an absent part is empty.
struct ImageData {
  std::vector<std::string> classes = {};
  ImageSet train = {}, validation = {}, test = {};
};

// Returns the set with square images of `size` pixels a side and so many channels (resize.h). Throws Error led by
// `name`.
ImageSet fitted(ImageSet set, int64_t size, int64_t channels, const std::string& name);

// Returns the images `chosen`, in this order.
ImageSet subset(const ImageSet& set, std::span<const int64_t> chosen);

// Divides the training images into the first and the second set: of each class `fraction` goes into the second, rounded
// to whole images, but never all. Which ones follows from their number alone, so that every model, seed and run has the
// same.
struct TwoSets {
  ImageSet first, second;
};
TwoSets held_out(const ImageSet& set, double fraction);

// PixelScale says how pixels become numbers: (pixel / 255 - mean) / deviation, for each channel.
struct PixelScale {
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};

// Returns the mean and the deviation of the pixels of each channel; a constant channel has the deviation 1.
PixelScale pixel_scale(const ImageSet& set);

}  // namespace headshare
