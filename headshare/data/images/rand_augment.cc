#include "headshare/data/images/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace headshare {
namespace {

uint8_t to_pixel(double value) { return static_cast<uint8_t>(std::clamp(std::lrint(value), 0L, 255L)); }

// An Affine says where a pixel of the result comes from, counted from the middle of the image.
struct Affine {
  double xx = 1, xy = 0, x = 0;
  double yx = 0, yy = 1, y = 0;
};

// Takes pixels from between others; outside of the image all is black.
void transform(const Affine& from, Image* image) {
  const int64_t H = image->height, W = image->width, C = image->channels;
  const auto at = [&, before = image->pixels](int64_t row, int64_t column, int64_t channel) -> double {
    if (row < 0 || row >= H || column < 0 || column >= W) return 0;
    return before[static_cast<size_t>((row * W + column) * C + channel)];
  };
  const double middle_row = static_cast<double>(H - 1) / 2, middle_column = static_cast<double>(W - 1) / 2;
  uint8_t* out = image->pixels.data();
  for (int64_t row = 0; row < H; ++row) {
    for (int64_t column = 0; column < W; ++column) {
      const double down = static_cast<double>(row) - middle_row, right = static_cast<double>(column) - middle_column;
      const double x = from.xx * right + from.xy * down + from.x + middle_column;
      const double y = from.yx * right + from.yy * down + from.y + middle_row;
      const auto left = static_cast<int64_t>(std::floor(x)), top = static_cast<int64_t>(std::floor(y));
      const double fx = x - std::floor(x), fy = y - std::floor(y);
      for (int64_t c = 0; c < C; ++c) {
        const double upper = (1 - fx) * at(top, left, c) + fx * at(top, left + 1, c);
        const double lower = (1 - fx) * at(top + 1, left, c) + fx * at(top + 1, left + 1, c);
        *out++ = to_pixel((1 - fy) * upper + fy * lower);
      }
    }
  }
}

// Goes from the image `plain` to the image as it is and beyond: 1 + strength times the way.
void move_from(const std::vector<double>& plain, double strength, Image* image) {
  const double factor = 1 + 0.9 * strength;
  for (size_t at = 0; at < plain.size(); ++at) {
    image->pixels[at] = to_pixel(plain[at] + factor * (image->pixels[at] - plain[at]));
  }
}

double luminance(const uint8_t* pixel, int64_t channels) {
  return channels == 1 ? pixel[0] : 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
}

// Returns the image in grey.
std::vector<double> grey_of(const Image& image) {
  std::vector<double> grey;
  for (size_t at = 0; at < image.pixels.size(); at += static_cast<size_t>(image.channels)) {
    grey.insert(grey.end(), static_cast<size_t>(image.channels), luminance(&image.pixels[at], image.channels));
  }
  return grey;
}

void shear_rows(double strength, Image* image) { transform({.xy = 0.3 * strength}, image); }
void shear_columns(double strength, Image* image) { transform({.yx = 0.3 * strength}, image); }
void move_rows(double strength, Image* image) {
  transform({.y = 0.45 * strength * static_cast<double>(image->height)}, image);
}
void move_columns(double strength, Image* image) {
  transform({.x = 0.45 * strength * static_cast<double>(image->width)}, image);
}
void turn(double strength, Image* image) {
  const double angle = strength * std::numbers::pi / 6;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  transform({.xx = cosine, .xy = -sine, .yx = sine, .yy = cosine}, image);
}

void change_brightness(double strength, Image* image) {
  move_from(std::vector<double>(image->pixels.size(), 0), strength, image);
}

void change_contrast(double strength, Image* image) {
  const std::vector<double> grey = grey_of(*image);
  double sum = 0;
  for (const double one : grey) sum += one;
  move_from(std::vector<double>(grey.size(), sum / static_cast<double>(grey.size())), strength, image);
}

void change_colour(double strength, Image* image) { move_from(grey_of(*image), strength, image); }

// Blurs by the weights 1 1 1, 1 5 1, 1 1 1 of Pillow's filter; the edge stays.
void change_sharpness(double strength, Image* image) {
  const int64_t H = image->height, W = image->width, C = image->channels;
  std::vector<double> blurred(image->pixels.begin(), image->pixels.end());
  const int64_t line = W * C;
  for (int64_t row = 1; row + 1 < H; ++row) {
    for (int64_t at = row * line + C; at < (row + 1) * line - C; ++at) {
      double sum = 4 * image->pixels[static_cast<size_t>(at)];
      for (const int64_t near : {-line, int64_t{0}, line}) {
        for (const int64_t beside : {-C, int64_t{0}, C}) sum += image->pixels[static_cast<size_t>(at + near + beside)];
      }
      blurred[static_cast<size_t>(at)] = sum / 13;
    }
  }
  move_from(blurred, strength, image);
}

void posterise(double strength, Image* image) {
  const int dropped = static_cast<int>(std::lrint(4 * std::abs(strength)));
  const int kept = 0xFF << dropped;
  for (uint8_t& pixel : image->pixels) pixel = static_cast<uint8_t>(pixel & kept);
}

void solarise(double strength, Image* image) {
  const double least = 256 * (1 - std::abs(strength));
  for (uint8_t& pixel : image->pixels) pixel = pixel >= least ? static_cast<uint8_t>(255 - pixel) : pixel;
}

// Replaces the values of each channel by those of a table, which is made of how often each occurs.
template <class MakeTable>
void map_channels(Image* image, const MakeTable& make_table) {
  const auto C = static_cast<size_t>(image->channels);
  for (size_t channel = 0; channel < C; ++channel) {
    std::array<int64_t, 256> counts{};
    for (size_t at = channel; at < image->pixels.size(); at += C) ++counts[image->pixels[at]];
    const std::array<uint8_t, 256> table = make_table(counts);
    for (size_t at = channel; at < image->pixels.size(); at += C) image->pixels[at] = table[image->pixels[at]];
  }
}

void stretch_contrast(double, Image* image) {
  map_channels(image, [](const std::array<int64_t, 256>& counts) {
    const auto used = [](int64_t count) { return count > 0; };
    const double low = static_cast<double>(std::find_if(counts.begin(), counts.end(), used) - counts.begin());
    const double high = 255 - static_cast<double>(std::find_if(counts.rbegin(), counts.rend(), used) - counts.rbegin());
    std::array<uint8_t, 256> table{};
    for (size_t value = 0; value < table.size(); ++value) {
      const auto old = static_cast<double>(value);
      table[value] = high > low ? to_pixel((old - low) * 255 / (high - low)) : static_cast<uint8_t>(value);
    }
    return table;
  });
}

void equalise(double, Image* image) {
  map_channels(image, [](const std::array<int64_t, 256>& counts) {
    int64_t total = 0, last = 0;
    for (const int64_t count : counts) {
      total += count;
      if (count > 0) last = count;
    }
    const int64_t step = (total - last) / 255;
    std::array<uint8_t, 256> table{};
    int64_t below = step / 2;
    for (size_t value = 0; value < table.size(); ++value) {
      table[value] =
          step == 0 ? static_cast<uint8_t>(value) : static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
      below += counts[value];
    }
    return table;
  });
}

}  // namespace

const std::vector<ImageOperation>& image_operations() {
  static const std::vector<ImageOperation> operations = {
      {"none", [](double, Image*) {}},
      {"shear-rows", shear_rows},
      {"shear-columns", shear_columns},
      {"move-rows", move_rows},
      {"move-columns", move_columns},
      {"turn", turn},
      {"brightness", change_brightness},
      {"contrast", change_contrast},
      {"colour", change_colour},
      {"sharpness", change_sharpness},
      {"posterise", posterise},
      {"solarise", solarise},
      {"auto-contrast", stretch_contrast},
      {"equalise", equalise},
  };
  return operations;
}

void random_operation(double magnitude, Philox* random, Image* image) {
  const ImageOperation& drawn = image_operations()[random->below(image_operations().size())];
  drawn.apply(random->below(2) == 1 ? magnitude : -magnitude, image);
}

}  // namespace headshare
