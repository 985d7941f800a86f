#include "headshare/data/images/binary_images.h"

#include <algorithm>
#include <array>

#include "headshare/base/error.h"
#include "headshare/data/byte_stream.h"
#include "headshare/data/images/decode_image.h"

namespace headshare {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr int64_t kMostImages = int64_t{1} << 32;
constexpr int64_t kCifarSide = 32;
constexpr size_t kCifarPixels = 3 * kCifarSide * kCifarSide;

// Reads up to `bytes`, in pieces: a header may promise more than there is.
std::vector<uint8_t> read_bytes(ByteStream* stream, size_t bytes) {
  std::vector<uint8_t> all;
  while (all.size() < bytes) {
    const size_t before = all.size();
    const size_t wanted = std::min(kPiece, bytes - before);
    all.resize(before + wanted);
    const size_t count = stream->read(reinterpret_cast<char*>(all.data() + before), wanted);
    if (count == wanted) continue;
    all.resize(before + count);
    break;
  }
  return all;
}

void check_end(ByteStream* stream, const std::vector<uint8_t>& read, size_t expected) {
  HS_CHECK(read.size() == expected, stream->name(), " ends after ", read.size(), " of the ", expected,
           " bytes that its header promises; fetch the file again");
  char more = 0;
  HS_CHECK(stream->read(&more, 1) == 0, stream->name(), " goes on behind the ", expected,
           " bytes that its header promises; is it an IDX file?");
}

// Reads the header of an IDX file: two zero bytes, the type, the number of dimensions, the dimensions as 32 bits each.
std::vector<int64_t> read_dimensions(ByteStream* stream) {
  constexpr uint8_t kBytes = 8;  // the type of unsigned bytes
  const std::vector<uint8_t> magic = read_bytes(stream, 4);
  HS_CHECK(magic.size() == 4 && magic[0] == 0 && magic[1] == 0, stream->name(), " is no IDX file by its first bytes");
  HS_CHECK(magic[2] == kBytes, stream->name(), " holds values of IDX type ", int{magic[2]}, "; ", int{kBytes},
           " (unsigned bytes) is needed");
  HS_CHECK(magic[3] >= 1 && magic[3] <= 4, stream->name(), " has ", int{magic[3]}, " dimensions; images have 3 or 4");
  std::vector<int64_t> dimensions;
  for (int i = 0; i < magic[3]; ++i) {
    const std::vector<uint8_t> size = read_bytes(stream, 4);
    HS_CHECK(size.size() == 4, stream->name(), " ends within its header; fetch the file again");
    dimensions.push_back((int64_t{size[0]} << 24) | (int64_t{size[1]} << 16) | (int64_t{size[2]} << 8) |
                         int64_t{size[3]});
  }
  return dimensions;
}

// Takes the size of images from a header, and returns their number.
int64_t take_shape(const std::vector<int64_t>& dimensions, const std::string& name, ImageSet* set) {
  HS_CHECK(dimensions.size() >= 3, name, " has ", dimensions.size(), " dimensions; images have 3 or 4");
  set->height = dimensions[1];
  set->width = dimensions[2];
  set->channels = dimensions.size() == 4 ? dimensions[3] : 1;
  check_image_size(set->height, set->width, name);
  HS_CHECK(set->channels == 1 || set->channels == 3, name, " has images of ", set->channels,
           " channels; 1 or 3 are read");
  return dimensions[0];
}

void append_record(const std::vector<uint8_t>& record, ImageSet* set) {
  constexpr size_t kPlane = kCifarSide * kCifarSide;
  set->labels.push_back(record[0]);
  for (size_t pixel = 0; pixel < kPlane; ++pixel) {
    for (size_t channel = 0; channel < 3; ++channel) set->pixels.push_back(record[1 + channel * kPlane + pixel]);
  }
}

}  // namespace

ImageSet idx_shape(const fs::path& images) {
  ByteStream stream(images.string());
  ImageSet set;
  take_shape(read_dimensions(&stream), stream.name(), &set);
  return set;
}

ImageSet read_idx_images(const fs::path& images) {
  ImageSet set;
  ByteStream pixels(images.string());
  const int64_t count = take_shape(read_dimensions(&pixels), pixels.name(), &set);
  HS_CHECK(count <= kMostImages, pixels.name(), " has ", count, " images, more than ", kMostImages);
  const size_t expected = image_bytes(set.height, set.width, set.channels) * static_cast<size_t>(count);
  set.pixels = read_bytes(&pixels, expected);
  check_end(&pixels, set.pixels, expected);
  set.labels.assign(static_cast<size_t>(count), 0);
  return set;
}

ImageSet read_idx(const fs::path& images, const fs::path& labels) {
  ByteStream classes(labels.string());
  const std::vector<int64_t> label_shape = read_dimensions(&classes);
  HS_CHECK(label_shape.size() == 1, classes.name(), " has ", label_shape.size(), " dimensions; labels have 1");
  ImageSet set = read_idx_images(images);
  HS_CHECK(label_shape[0] == set.size(), images.string(), " has ", set.size(), " images and ", classes.name(), " ",
           label_shape[0], " labels; both must be of one data set");
  const std::vector<uint8_t> bytes = read_bytes(&classes, static_cast<size_t>(set.size()));
  check_end(&classes, bytes, static_cast<size_t>(set.size()));
  set.labels.assign(bytes.begin(), bytes.end());
  return set;
}

ImageSet read_cifar10(const std::vector<fs::path>& files) {
  ImageSet set{.height = kCifarSide, .width = kCifarSide, .channels = 3};
  for (const fs::path& file : files) {
    ByteStream stream(file.string());
    for (int64_t number = 0;; ++number) {
      const std::vector<uint8_t> record = read_bytes(&stream, 1 + kCifarPixels);
      if (record.empty()) break;
      HS_CHECK(record.size() == 1 + kCifarPixels, stream.name(), " ends after ", record.size(), " of the ",
               1 + kCifarPixels, " bytes of image ", number + 1,
               "; it is cut short, or no file of CIFAR-10's binary version");
      HS_CHECK(record[0] < cifar10_classes().size(), stream.name(), ": image ", number + 1, " has the class ",
               int{record[0]}, "; CIFAR-10 has 0 to 9");
      append_record(record, &set);
    }
  }
  return set;
}

const std::vector<std::string>& cifar10_classes() {
  static const std::vector<std::string> classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                   "dog",      "frog",       "horse", "ship", "truck"};
  return classes;
}

}  // namespace headshare
