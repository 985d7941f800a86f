#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs it

#include "headshare/base/error.h"
#include "headshare/data/images/decode_image.h"

namespace headshare {
namespace {

// A progressive file may repeat its pixels in many scans; each costs as much time as the whole.
constexpr int kMostScans = 100;

// A JpegReading holds what libjpeg's callbacks need. libjpeg leaves a failing call by longjmp, past functions of C
// only: between setjmp and the call nothing of C++ is made.
struct JpegReading {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "";

  JpegReading() = default;
  JpegReading(const JpegReading&) = delete;
  JpegReading& operator=(const JpegReading&) = delete;
  ~JpegReading() { jpeg_destroy_decompress(&state); }
};

[[noreturn]] void fail_jpeg(j_common_ptr state) {
  auto* reading = static_cast<JpegReading*>(state->client_data);
  state->err->format_message(state, reading->message);
  std::longjmp(reading->back, 1);
}

// libjpeg fills what is missing with grey and warns; what was not in the file is no image. The warnings that pass are
// about bytes between the parts of a file and about versions, which cost no pixel.
void fail_where_pixels_are_lost(j_common_ptr state, int level) {
  if (level >= 0) return;  // a message, no warning
  switch (state->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return;
    default:
      fail_jpeg(state);
  }
}

void stop_endless_scans(j_common_ptr state) {
  auto* reading = static_cast<JpegReading*>(state->client_data);
  if (reading->state.input_scan_number <= kMostScans) return;
  std::snprintf(reading->message, sizeof reading->message, "it has more than %d scans", kMostScans);
  std::longjmp(reading->back, 1);
}

bool read_jpeg_header(JpegReading* reading, std::string_view file) {
  if (setjmp(reading->back)) return false;
  jpeg_create_decompress(&reading->state);
  reading->progress.progress_monitor = stop_endless_scans;
  reading->state.progress = &reading->progress;
  jpeg_mem_src(&reading->state, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&reading->state, TRUE);
  return true;
}

bool read_jpeg_rows(JpegReading* reading, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reading->back)) return false;
  jpeg_start_decompress(&reading->state);
  while (reading->state.output_scanline < reading->state.output_height) {
    JSAMPROW row = pixels + static_cast<size_t>(reading->state.output_scanline) * row_bytes;
    jpeg_read_scanlines(&reading->state, &row, 1);
  }
  jpeg_finish_decompress(&reading->state);
  return true;
}

}  // namespace

Image decode_jpeg(std::string_view file, const std::string& name) {
  JpegReading reading;
  reading.state.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = fail_jpeg;
  reading.errors.emit_message = fail_where_pixels_are_lost;
  reading.state.client_data = &reading;
  const auto check = [&](bool well) {
    HS_CHECK(well, "cannot decode ", name, ": ", reading.message, "; fetch the file again");
  };
  check(read_jpeg_header(&reading, file));
  Image image{.height = reading.state.image_height, .width = reading.state.image_width};
  check_image_size(image.height, image.width, name);
  HS_CHECK(reading.state.num_components == 1 || reading.state.num_components == 3, "cannot decode ", name, ": it has ",
           reading.state.num_components, " components, as CMYK has four; convert it to RGB");
  image.channels = reading.state.num_components;
  reading.state.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  image.pixels.resize(image_bytes(image.height, image.width, image.channels));
  check(read_jpeg_rows(&reading, image.pixels.data(), image_bytes(1, image.width, image.channels)));
  return image;
}

}  // namespace headshare
