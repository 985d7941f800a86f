#include "headshare/data/images/augmentation.h"

#include <algorithm>
#include <cmath>

#include "headshare/data/images/rand_augment.h"

namespace headshare {
namespace {

void mirror(Image* image) {
  const int64_t C = image->channels;
  for (int64_t row = 0; row < image->height; ++row) {
    uint8_t* left = image->pixels.data() + row * image->width * C;
    uint8_t* right = left + (image->width - 1) * C;
    for (; left < right; left += C, right -= C) std::swap_ranges(left, left + C, right);
  }
}

// Moves the image by so many pixels; what comes in is black.
void shift(int64_t down, int64_t right, Image* image) {
  if (down == 0 && right == 0) return;
  const int64_t H = image->height, W = image->width, C = image->channels;
  std::vector<uint8_t> made(image->pixels.size(), 0);
  const int64_t first = std::clamp<int64_t>(right, 0, W), end = std::clamp<int64_t>(W + right, 0, W);
  for (int64_t row = std::max<int64_t>(down, 0); row < std::min(H + down, H); ++row) {
    const auto begin = image->pixels.begin() + ((row - down) * W + first - right) * C;
    std::copy(begin, begin + (end - first) * C, made.begin() + (row * W + first) * C);
  }
  image->pixels = std::move(made);
}

// Draws from the gamma distribution by the method of Marsaglia and Tsang (2000).
double gamma_draw(double shape, Philox* random) {
  if (shape < 1) {
    const double larger = gamma_draw(shape + 1, random);
    return larger * std::pow(1 - random->uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random->normal();
    const double v = std::pow(1 + c * x, 3);
    const double u = 1 - random->uniform();
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

Fields fields(AugmentationOptions& options) {
  const double most_mixup = 100;
  return {
      field("crop-padding", &options.crop_padding,
            "training images are moved by up to so many pixels in each direction, over black", {.min = 0, .max = 1024}),
      field("flip", &options.flip, "half of the training images are mirrored, left to right"),
      field("rand-augment", &options.rand_augment,
            "random operations on each training image: turns, shears, contrast, brightness and others; 0: none",
            {.min = 0, .max = 16}),
      field("rand-augment-magnitude", &options.rand_augment_magnitude, "how strong these operations are, of 1",
            {.min = 0, .max = 1}),
      field("mixup", &options.mixup, "mix training images of a batch in pairs, by a share of Beta(A, A); 0: none",
            {.min = 0, .max = most_mixup}),
  };
}

void augment(const AugmentationOptions& options, Philox* random, Image* image) {
  if (options.flip && random->below(2) == 1) mirror(image);
  if (options.crop_padding > 0) {
    const auto places = static_cast<uint64_t>(2 * options.crop_padding + 1);
    const auto down = static_cast<int64_t>(random->below(places)) - options.crop_padding;
    const auto right = static_cast<int64_t>(random->below(places)) - options.crop_padding;
    shift(down, right, image);
  }
  for (int64_t i = 0; i < options.rand_augment; ++i) random_operation(options.rand_augment_magnitude, random, image);
}

double mixing_share(double alpha, Philox* random) {
  const double a = gamma_draw(alpha, random), b = gamma_draw(alpha, random);
  if (a + b <= 0) return 1;  // both are too small for a double: the share is near 0 or 1
  return std::max(a, b) / (a + b);
}

}  // namespace headshare
