// These targets read images: PNG and JPEG files, IDX and CIFAR-10, and folders with a class each.
#include <zlib.h>

#include "headshare/data/images/binary_images.h"
#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/open_images.h"
#include "headshare/data/images/test_images.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

constexpr const char* kImage = "image";
constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";
constexpr const char* kBatch = "train.bin";

void use_pixels(const std::vector<uint8_t>& pixels) {
  uint64_t sum = pixels.size();
  for (const uint8_t pixel : pixels) sum += pixel;
  use(sum);
}

void decode_one(const fs::path& folder) { use_pixels(read_image(folder / kImage).pixels); }

void open_data(const fs::path& folder) {
  const ImageDataOptions options{.images = folder.string(), .image_validation_fraction = 0.5};
  use(static_cast<uint64_t>(image_shape(options).size));
  use_pixels(open_images(options, 4, 3).train.pixels);
}

void read_cifar(const fs::path& folder) { use_pixels(read_cifar10({folder / kBatch}).pixels); }

// Gives each chunk of a PNG file the checksum of what it holds now: libpng refuses others before it looks at them.
std::string with_checksums(const std::string&, const std::string& mutated) {
  std::string file = mutated;
  const auto byte = [&](size_t at) { return static_cast<uint64_t>(static_cast<uint8_t>(file[at])); };
  for (size_t at = 8; at + 12 <= file.size();) {
    const uint64_t size = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (size > file.size() - at - 12) break;
    const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(file.data() + at + 4), static_cast<uInt>(size + 4));
    for (size_t i = 0; i < 4; ++i) file[at + 8 + size + i] = static_cast<char>(sum >> (24 - 8 * i) & 0xFF);
    at += 12 + size;
  }
  return file;
}

std::vector<Case> png_seeds() {
  const Image image = random_image(9, 7, 3);
  const std::vector<uint8_t> indices = {1, 0, 2, 1};
  return {{{kImage, png_file(image)}},
          {{kImage, png_file(random_image(5, 5, 1))}},
          {{kImage, png_file(9, 7, image.pixels, {.interlace = PNG_INTERLACE_ADAM7})}},
          {{kImage, png_file(2, 2, indices,
                             {.colour_type = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}})}},
          {{kImage, png_file(2, 1, indices, {.bits = 16, .colour_type = PNG_COLOR_TYPE_GRAY})}}};
}

}  // namespace

std::vector<Target> targets() {
  const std::string pixels(8, '\x07');
  return {
      {.name = "png", .read = decode_one, .seeds = png_seeds()},
      {.name = "png-chunks", .read = decode_one, .seeds = png_seeds(), .packed = with_checksums},
      {.name = "jpeg",
       .read = decode_one,
       .seeds = {{{kImage, jpeg_file(random_image(17, 9, 3))}}, {{kImage, jpeg_file(random_image(8, 8, 1))}}}},
      {.name = "idx",
       .read = open_data,
       .seeds = {{{kImages, idx_file({2, 2, 2}, pixels)}, {kLabels, idx_file({2}, std::string(2, '\0'))}}}},
      {.name = "cifar", .read = read_cifar, .seeds = {{{kBatch, std::string(2 * 3073, '\0')}}}},
  };
}

}  // namespace headshare::fuzz
