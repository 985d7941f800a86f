#include <png.h>

#include <csetjmp>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/data/images/decode_image.h"

namespace headshare {
namespace {

// Deflate makes at most so many bytes of one.
constexpr double kMostDeflated = 1032;

// A PngReading holds what libpng's callbacks need. libpng leaves a failing call by longjmp, past functions of C only:
// between setjmp and the call nothing of C++ is made.
struct PngReading {
  std::string_view rest;
  char message[160] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;

  PngReading() = default;
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
};

void fail_png(png_structp png, png_const_charp message) {
  auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
  std::strncpy(reading->message, message, sizeof reading->message - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep out, size_t bytes) {
  auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
  if (bytes > reading->rest.size()) png_error(png, "the file is cut short");
  std::memcpy(out, reading->rest.data(), bytes);
  reading->rest.remove_prefix(bytes);
}

bool read_png_header(PngReading* reading) {
  if (setjmp(png_jmpbuf(reading->png))) return false;
  png_read_info(reading->png, reading->info);
  return true;
}

// Asks for 8 bits of grey or of three colours.
bool choose_form(PngReading* reading) {
  if (setjmp(png_jmpbuf(reading->png))) return false;
  png_set_expand(reading->png);
  png_set_scale_16(reading->png);
  png_set_strip_alpha(reading->png);
  png_set_interlace_handling(reading->png);
  png_read_update_info(reading->png, reading->info);
  return true;
}

bool read_png_rows(PngReading* reading, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reading->png))) return false;
  png_read_image(reading->png, rows);
  png_read_end(reading->png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::string_view file, const std::string& name) {
  PngReading reading;
  reading.rest = file;
  const auto check = [&](bool well) {
    HS_CHECK(well, "cannot decode ", name, ": ", reading.message, "; fetch the file again");
  };
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail_png, ignore_warning);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  HS_CHECK(reading.info != nullptr, "cannot decode ", name, ": out of memory");
  png_set_read_fn(reading.png, &reading, give_bytes);
  // The limits are check_image_size's; libpng's own would refuse a wide image without its numbers.
  png_set_user_limits(reading.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  check(read_png_header(&reading));
  Image image{.height = png_get_image_height(reading.png, reading.info),
              .width = png_get_image_width(reading.png, reading.info)};
  check_image_size(image.height, image.width, name);
  const auto packed =
      static_cast<double>(png_get_rowbytes(reading.png, reading.info)) * static_cast<double>(image.height);
  HS_CHECK(packed <= kMostDeflated * static_cast<double>(file.size()), "cannot decode ", name, ": it says that it has ",
           image.width, " x ", image.height, " pixels, more than its ", file.size(), " bytes can hold");
  check(choose_form(&reading));
  image.channels = png_get_channels(reading.png, reading.info);
  HS_CHECK(image.channels == 1 || image.channels == 3, "cannot decode ", name, ": it has ", image.channels,
           " channels");
  image.pixels.resize(image_bytes(image.height, image.width, image.channels));
  std::vector<png_bytep> rows;
  const size_t row_bytes = image_bytes(1, image.width, image.channels);
  for (int64_t row = 0; row < image.height; ++row) {
    rows.push_back(image.pixels.data() + static_cast<size_t>(row) * row_bytes);
  }
  check(read_png_rows(&reading, rows.data()));
  return image;
}

}  // namespace headshare
