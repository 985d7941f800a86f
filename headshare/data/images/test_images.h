// For tests only: this header makes images, and files of them.
#pragma once

#include <jpeglib.h>
#include <png.h>

#include <cstdio>  // before jpeglib.h, which needs it
#include <cstdlib>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/base/rng.h"
#include "headshare/data/images/image.h"

namespace headshare {

// Makes an image of random pixels.
inline Image random_image(int64_t height, int64_t width, int64_t channels, uint64_t seed = 1) {
  Image image{.height = height, .width = width, .channels = channels};
  Philox random(seed);
  image.pixels.resize(image_bytes(height, width, channels));
  for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(random.below(256));
  return image;
}

struct PngForm {
  int bits = 8;
  int colour_type = PNG_COLOR_TYPE_RGB;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<png_color> palette = {};
};

// Returns the bytes of a PNG file; `rows` has its rows as the form packs them.
inline std::string png_file(int64_t height, int64_t width, const std::vector<uint8_t>& rows, const PngForm& form) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto write = [](png_structp to, png_bytep data, size_t bytes) {
    static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<const char*>(data), bytes);
  };
  png_set_write_fn(png, &file, write, [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), form.bits,
               form.colour_type, form.interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!form.palette.empty()) png_set_PLTE(png, info, form.palette.data(), static_cast<int>(form.palette.size()));
  png_write_info(png, info);
  std::vector<uint8_t> copy = rows;
  std::vector<png_bytep> starts;
  const size_t row_bytes = rows.size() / static_cast<size_t>(height);
  for (int64_t row = 0; row < height; ++row) starts.push_back(copy.data() + static_cast<size_t>(row) * row_bytes);
  png_write_image(png, starts.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline std::string png_file(const Image& image) {
  return png_file(image.height, image.width, image.pixels,
                  {.colour_type = image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB});
}

// Returns the bytes of a JPEG file of best quality; four channels are taken as CMYK.
inline std::string jpeg_file(const Image& image) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = static_cast<JDIMENSION>(image.width);
  state.image_height = static_cast<JDIMENSION>(image.height);
  state.input_components = static_cast<int>(image.channels);
  state.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 100, TRUE);
  jpeg_start_compress(&state, TRUE);
  std::vector<uint8_t> pixels = image.pixels;
  for (int64_t row = 0; row < image.height; ++row) {
    JSAMPROW start = pixels.data() + static_cast<size_t>(row) * image_bytes(1, image.width, image.channels);
    jpeg_write_scanlines(&state, &start, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return file;
}

// Returns an IDX file of bytes with these dimensions.
inline std::string idx_file(const std::vector<int64_t>& dimensions, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const int64_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(size >> shift & 0xFF);
  }
  return file + bytes;
}

}  // namespace headshare
