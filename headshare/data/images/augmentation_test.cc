#include "headshare/data/images/augmentation.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/data/images/rand_augment.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;

Image changed(const Image& image, const AugmentationOptions& options, uint64_t key) {
  Image copy = image;
  Philox random(key);
  augment(options, &random, &copy);
  return copy;
}

Image operated(const Image& image, const std::string& name, double strength) {
  Image copy = image;
  for (const ImageOperation& one : image_operations()) {
    if (one.name == name) one.apply(strength, &copy);
  }
  return copy;
}

TEST(AugmentTest, MirrorsHalfOfTheImages) {
  const Image image{.height = 1, .width = 3, .channels = 3, .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  int mirrored = 0;
  for (uint64_t key = 0; key < 1000; ++key) {
    const Image seen = changed(image, {.flip = true}, key);
    if (seen == image) continue;
    EXPECT_THAT(seen.pixels, ElementsAre(7, 8, 9, 4, 5, 6, 1, 2, 3));
    ++mirrored;
  }
  EXPECT_NEAR(mirrored, 500, 80);  // five standard deviations
}

TEST(AugmentTest, CropsAreTheImageMovedOverBlack) {
  const Image image{.height = 2, .width = 2, .channels = 1, .pixels = {1, 2, 3, 4}};
  std::set<std::vector<uint8_t>> seen;
  for (uint64_t key = 0; key < 500; ++key) seen.insert(changed(image, {.crop_padding = 1}, key).pixels);
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_TRUE(seen.contains({0, 0, 0, 1}));
  EXPECT_TRUE(seen.contains({4, 0, 0, 0}));
  EXPECT_TRUE(seen.contains({3, 4, 0, 0}));
  EXPECT_EQ(changed(image, {.crop_padding = 9}, 3).pixels.size(), 4u);
}

TEST(AugmentTest, DoesNothingUnasked) {
  const Image image = random_image(4, 4, 3);
  EXPECT_EQ(changed(image, {}, 1), image);
}

TEST(ImageOperationsTest, OfNoStrengthChangeNothing) {
  const Image image = random_image(6, 5, 3);
  for (const ImageOperation& one : image_operations()) {
    if (one.name == "auto-contrast" || one.name == "equalise") continue;
    EXPECT_EQ(operated(image, one.name, 0), image) << one.name;
    EXPECT_EQ(operated(image, one.name, 0.7) == image, one.name == "none") << one.name;
  }
}

TEST(ImageOperationsTest, DoWhatTheyAreCalled) {
  const Image image{.height = 1, .width = 4, .channels = 1, .pixels = {10, 20, 30, 60}};
  EXPECT_THAT(operated(image, "brightness", 1).pixels, ElementsAre(19, 38, 57, 114));
  EXPECT_THAT(operated(image, "contrast", -1).pixels, ElementsAre(28, 29, 30, 33));
  EXPECT_THAT(operated(image, "posterise", 1).pixels, ElementsAre(0, 16, 16, 48));
  EXPECT_THAT(operated(image, "solarise", 1).pixels, ElementsAre(245, 235, 225, 195));
  EXPECT_THAT(operated(image, "auto-contrast", 0).pixels, ElementsAre(0, 51, 102, 255));
  EXPECT_THAT(operated(image, "move-columns", 1 / (0.45 * 4)).pixels, ElementsAre(20, 30, 60, 0));
  EXPECT_THAT(operated(image, "colour", 1).pixels, ElementsAre(10, 20, 30, 60));
}

TEST(MixingShareTest, FollowsTheBetaDistribution) {
  Philox random(1);
  for (const double alpha : {0.2, 1.0, 5.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double from_half = mixing_share(alpha, &random) - 0.5;
      EXPECT_TRUE(from_half >= 0 && from_half <= 0.5);
      sum += from_half;
      squares += from_half * from_half;
    }
    // The variance of Beta(a, a) is 1 / (4 (2 a + 1)); five standard errors are below 0.0025 for each of these.
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.0035) << alpha;
  }
}

}  // namespace
}  // namespace headshare
