#include "headshare/data/images/encode_png.h"

#include <png.h>

#include "headshare/base/error.h"

namespace headshare {

std::string encode_png(const Image& image) {
  png_image form{};
  form.version = PNG_IMAGE_VERSION;
  form.width = static_cast<png_uint_32>(image.width);
  form.height = static_cast<png_uint_32>(image.height);
  form.format = image.channels == 1 ? PNG_FORMAT_GRAY : image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(form);
  std::string file(bytes, '\0');
  const int well = png_image_write_to_memory(&form, file.data(), &bytes, /*convert_to_8bit=*/0, image.pixels.data(),
                                             /*row_stride=*/0, /*colormap=*/nullptr);
  HS_CHECK(well != 0, "cannot write an image of ", image.width, " x ", image.height, " pixels as PNG: ", form.message);
  file.resize(bytes);
  return file;
}

}  // namespace headshare
