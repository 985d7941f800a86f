// These functions decode PNG files with libpng and JPEG files with libjpeg-turbo.
#pragma once

#include <string>
#include <string_view>

#include "headshare/base/files/file.h"
#include "headshare/data/images/image.h"

namespace headshare {

// An image has at most so many pixels, and a side at most kMostAspect times the other.
constexpr int64_t kMostPixels = int64_t{1} << 27;
constexpr int64_t kMostAspect = 100;

// Decodes a PNG or JPEG file, which its first bytes tell apart. Palettes become colours, 16 bits become 8, fewer bits
// are spread over 0 .. 255, transparency is dropped as Pillow's convert("RGB") drops it. The orientation that a camera
// notes is ignored. Throws Error led by `name`: for other formats, for CMYK, for a file that is cut short or damaged,
// and, before memory is taken, for a size beyond the limits above.
Image decode_image(std::string_view file, const std::string& name);

// Does the same with a file on disk.
Image read_image(const fs::path& path);

// Throws Error led by `name` for a size beyond the limits.
void check_image_size(int64_t height, int64_t width, const std::string& name);

// Each decodes one format.
Image decode_png(std::string_view file, const std::string& name);
Image decode_jpeg(std::string_view file, const std::string& name);

}  // namespace headshare
