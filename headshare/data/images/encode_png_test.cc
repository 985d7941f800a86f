#include "headshare/data/images/encode_png.h"

#include <gmock/gmock.h>

#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

TEST(EncodePngTest, IsDecodedToTheSameImage) {
  for (const int64_t channels : {1, 3}) {
    const Image image = random_image(5, 7, channels);
    EXPECT_EQ(decode_image(encode_png(image), "x.png"), image) << channels;
  }
  const Image seen = random_image(5, 7, 3);
  Image with_opacity{.height = 5, .width = 7, .channels = 4};
  for (size_t at = 0; at < seen.pixels.size(); ++at) {
    with_opacity.pixels.push_back(seen.pixels[at]);
    if (at % 3 == 2) with_opacity.pixels.push_back(static_cast<uint8_t>(at));
  }
  EXPECT_EQ(decode_image(encode_png(with_opacity), "x.png"), seen);
}

}  // namespace
}  // namespace headshare
