#include "headshare/data/images/resize.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

// Pixels are (7 i i + 31 i) % 256 for i = 0, 1, ...
Image pattern(int64_t height, int64_t width, int64_t channels) {
  Image image{.height = height, .width = width, .channels = channels};
  for (int64_t i = 0; i < height * width * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>((7 * i * i + 31 * i) % 256));
  }
  return image;
}

// The expected pixels are Pillow 13.0's: Image.fromarray(a).resize((width, height), Image.BILINEAR).
TEST(ResizedTest, GivesPillowsPixels) {
  EXPECT_THAT(resized(pattern(7, 5, 1), 3, 2).pixels, ElementsAreArray({102, 120, 183, 96, 103, 161}));
  EXPECT_THAT(resized(pattern(3, 4, 1), 5, 6).pixels,
              ElementsAreArray({0,   19,  47, 81,  123, 156, 94,  73,  65,  114, 120, 113, 236, 155, 92,
                                164, 115, 48, 205, 141, 100, 195, 168, 118, 184, 131, 105, 215, 203, 164}));
  EXPECT_THAT(resized(pattern(6, 6, 3), 2, 3).pixels, ElementsAreArray({109, 131, 103, 124, 134, 126, 132, 130, 142,
                                                                        155, 107, 129, 146, 122, 116, 103, 141, 102}));
  EXPECT_THAT(resized(pattern(4, 8, 1), 4, 3).pixels,
              ElementsAreArray({49, 154, 122, 154, 133, 97, 172, 81, 153, 103, 133, 74}));
}

TEST(SquaredTest, CutsTheMiddleOut) {
  const Image image = pattern(2, 6, 1);
  EXPECT_THAT(squared(image, 2).pixels,
              ElementsAre(image.pixels[2], image.pixels[3], image.pixels[8], image.pixels[9]));
  const std::vector<uint8_t> high = pattern(9, 5, 3).pixels;
  EXPECT_EQ(squared(pattern(9, 5, 3), 5).pixels, std::vector<uint8_t>(high.begin() + 30, high.begin() + 105));
  EXPECT_EQ(squared(image, 4).width, 4);
}

TEST(WithChannelsTest, GreyBecomesColoursAndColoursAreNoGrey) {
  const Image grey{.height = 1, .width = 2, .channels = 1, .pixels = {5, 6}};
  EXPECT_THAT(with_channels(grey, 3, "x").pixels, ElementsAre(5, 5, 5, 6, 6, 6));
  EXPECT_THAT(error_message([] { with_channels(pattern(1, 1, 3), 1, "x.png"); }),
              HasSubstr("x.png has 3 channels (colour), and images of 1 (grey) are read here"));
}

}  // namespace
}  // namespace headshare
