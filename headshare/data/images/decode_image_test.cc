#include "headshare/data/images/decode_image.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string decode_refusal(const std::string& file) {
  return error_message([&] { decode_image(file, "a file"); });
}

TEST(DecodePngTest, GivesThePixelsThatWereWritten) {
  for (const int64_t channels : {1, 3}) {
    const Image image = random_image(5, 7, channels);
    EXPECT_EQ(decode_image(png_file(image), "a file"), image);
  }
  const Image image = random_image(9, 11, 3);
  EXPECT_EQ(decode_image(png_file(9, 11, image.pixels, {.interlace = PNG_INTERLACE_ADAM7}), "a file"), image);
}

TEST(DecodePngTest, EveryFormBecomesEightBits) {
  const auto pixels = [](const std::vector<uint8_t>& row, const PngForm& form, int64_t width) {
    return decode_image(png_file(1, width, row, form), "a file").pixels;
  };
  EXPECT_THAT(pixels({0b10110000}, {.bits = 1, .colour_type = PNG_COLOR_TYPE_GRAY}, 4), ElementsAre(255, 0, 255, 255));
  EXPECT_THAT(pixels({0x80, 0x80, 0x00, 0xFF}, {.bits = 16, .colour_type = PNG_COLOR_TYPE_GRAY}, 2),
              ElementsAre(128, 1));
  EXPECT_THAT(pixels({1, 0}, {.colour_type = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {4, 5, 6}}}, 2),
              ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(pixels({7, 8, 9, 0}, {.colour_type = PNG_COLOR_TYPE_RGB_ALPHA}, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(pixels({7, 0}, {.colour_type = PNG_COLOR_TYPE_GRAY_ALPHA}, 1), ElementsAre(7));
}

// An 8 x 8 block of one colour loses nothing by the cosine transform.
TEST(DecodeJpegTest, GivesThePixelsThatWereWritten) {
  for (const int64_t channels : {1, 3}) {
    const Image image{.height = 8, .width = 8, .channels = channels, .pixels = std::vector<uint8_t>(64 * channels, 90)};
    EXPECT_EQ(decode_image(jpeg_file(image), "a file"), image);
  }
}

TEST(DecodeImageTest, RefusesWhatItCannotDecode) {
  EXPECT_THAT(decode_refusal(""), HasSubstr("a file is empty"));
  EXPECT_THAT(decode_refusal("GIF89a"), HasSubstr("is no PNG or JPEG image"));
  EXPECT_THAT(decode_refusal(jpeg_file(random_image(8, 8, 4))), HasSubstr("it has 4 components, as CMYK has four"));
  EXPECT_THAT(decode_refusal(png_file(random_image(1, 101, 1))),
              HasSubstr("one side is more than 100 times the other"));
}

// Every file that is cut short is refused, wherever it is cut; a JPEG may do without the last marker.
TEST(DecodeImageTest, RefusesWhatIsCutShort) {
  const std::string png = png_file(random_image(16, 16, 3));
  for (size_t size = 0; size < png.size(); ++size) EXPECT_NE(decode_refusal(png.substr(0, size)), "no error") << size;
  const std::string jpeg = jpeg_file(random_image(16, 16, 3));
  for (size_t size = 0; size + 2 < jpeg.size(); ++size) {
    EXPECT_NE(decode_refusal(jpeg.substr(0, size)), "no error") << size;
  }
}

TEST(DecodeImageTest, RefusesHugeSizesBeforeMemoryIsTaken) {
  std::string png = png_file(random_image(2, 2, 1));
  const auto set_size = [&](uint32_t side) {
    for (const size_t begin : {size_t{16}, size_t{20}}) {
      for (size_t i = 0; i < 4; ++i) png[begin + i] = static_cast<char>(side >> (24 - 8 * i) & 0xFF);
    }
    const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17);
    for (size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(sum >> (24 - 8 * i) & 0xFF);
  };
  set_size(100000);
  EXPECT_THAT(decode_refusal(png), HasSubstr("100000 x 100000 pixels, more than the 134217728 that are read"));
  set_size(10000);
  EXPECT_THAT(decode_refusal(png), HasSubstr("10000 x 10000 pixels, more than its"));
  std::string jpeg = jpeg_file(random_image(8, 8, 1));
  const size_t frame = jpeg.find("\xFF\xC0");
  for (const size_t at : {5, 6, 7, 8}) jpeg[frame + at] = '\xFD';
  EXPECT_THAT(decode_refusal(jpeg), HasSubstr("65021 x 65021 pixels"));
}

}  // namespace
}  // namespace headshare
