#include "headshare/data/images/decode_image.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr std::string_view kPngBegins = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegBegins = "\xFF\xD8\xFF";
constexpr uint64_t kMostFileBytes = uint64_t{1} << 29;

}  // namespace

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  HS_CHECK(height > 0 && width > 0, name, " is an image of ", width, " x ", height, " pixels");
  HS_CHECK(height <= kMostPixels / width, name, " says that it has ", width, " x ", height, " pixels, more than the ",
           kMostPixels, " that are read; make it smaller");
  HS_CHECK(std::max(height, width) <= kMostAspect * std::min(height, width), name, " has ", width, " x ", height,
           " pixels: one side is more than ", kMostAspect, " times the other; cut it");
}

Image decode_image(std::string_view file, const std::string& name) {
  HS_CHECK(!file.empty(), name, " is empty: a PNG or JPEG image was expected");
  if (file.starts_with(kPngBegins)) return decode_png(file, name);
  if (file.starts_with(kJpegBegins)) return decode_jpeg(file, name);
  throw Error(name + " is no PNG or JPEG image by its first bytes; convert it to one of them");
}

Image read_image(const fs::path& path) { return decode_image(read_file(path, kMostFileBytes), path.string()); }

}  // namespace headshare
