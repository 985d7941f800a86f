#include "headshare/data/images/image_batcher.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Makes images of 2 x 2 pixels; image i has the label i and is of grey i.
std::shared_ptr<const ImageSet> numbered(int64_t count) {
  auto set = std::make_shared<ImageSet>(ImageSet{.height = 2, .width = 2, .channels = 1});
  for (int64_t i = 0; i < count; ++i) {
    set->labels.push_back(i);
    set->pixels.insert(set->pixels.end(), 4, static_cast<uint8_t>(i));
  }
  return set;
}

ImageBatcherOptions options_of(int64_t batch, int64_t ahead = 2) {
  return {.batch_size = batch,
          .seed = 3,
          .scale = {.mean = {0}, .deviation = {1 / 255.}},
          .augmentation = {.crop_padding = 1, .flip = true, .rand_augment = 1, .mixup = 0.4},
          .ahead = ahead};
}

ImageBatcherOptions plain(int64_t batch) {
  ImageBatcherOptions options = options_of(batch);
  options.augmentation = {};
  return options;
}

TEST(ImageBatcherTest, GivesEachImageOnceAnEpoch) {
  ImageBatcher batcher(numbered(10), plain(3));
  std::vector<int64_t> last;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (int i = 0; i < 3; ++i) {
      const ImageBatch batch = batcher.next();
      ASSERT_EQ(batch.labels.size(), 3u);
      for (size_t row = 0; row < 3; ++row) {
        EXPECT_NEAR(batch.pixels[4 * row], static_cast<float>(batch.labels[row]), 1e-4);
      }
      seen.insert(seen.end(), batch.labels.begin(), batch.labels.end());
    }
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 9u);
    EXPECT_NE(seen, last);
    last = seen;
  }
  EXPECT_EQ(batcher.epochs(), 3);
}

TEST(ImageBatcherTest, ThreadsChangeNothing) {
  ImageBatcher alone(numbered(20), options_of(4, 0)), ahead(numbered(20), options_of(4, 3));
  for (int i = 0; i < 12; ++i) {
    const ImageBatch a = alone.next(), b = ahead.next();
    EXPECT_EQ(a.pixels, b.pixels);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.mixed_labels, b.mixed_labels);
    EXPECT_EQ(a.share, b.share);
  }
}

TEST(ImageBatcherTest, GoesOnWhereItStood) {
  ImageBatcher batcher(numbered(20), options_of(6));
  for (int i = 0; i < 4; ++i) batcher.next();
  ImageBatcher other(numbered(20), options_of(6));
  other.next();
  other.restore(image_batch_state_from_json(to_json(batcher.state()), "here"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(batcher.next().pixels, other.next().pixels);
}

TEST(ImageBatcherTest, MixesEachImageWithAnother) {
  ImageBatcherOptions options = plain(4);
  options.augmentation.mixup = 1;
  ImageBatcher batcher(numbered(8), options);
  const ImageBatch batch = batcher.next();
  ASSERT_EQ(batch.mixed_labels.size(), 4u);
  EXPECT_TRUE(batch.share >= 0.5 && batch.share < 1);
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(batch.mixed_labels[row], batch.labels[3 - row]);
    const double mixed = batch.share * static_cast<double>(batch.labels[row]) +
                         (1 - batch.share) * static_cast<double>(batch.mixed_labels[row]);
    EXPECT_NEAR(batch.pixels[4 * row], mixed, 1e-4);
  }
}

TEST(ImageBatcherTest, FewImagesAreOneBatch) {
  ImageBatcher batcher(numbered(3), plain(8));
  EXPECT_EQ(batcher.next().labels.size(), 3u);
  EXPECT_EQ(batcher.epochs(), 1);
}

TEST(ImageBatcherTest, RefusesOtherImages) {
  ImageBatcher batcher(numbered(10), plain(3));
  ImageBatchState state = batcher.state();
  state.batch = 3;
  EXPECT_THAT(error_message([&] { batcher.restore(state); }), HasSubstr("batch 3 of epoch 0: it has 3"));
  state = ImageBatcher(numbered(11), plain(3)).state();
  EXPECT_THAT(error_message([&] { batcher.restore(state); }), HasSubstr("cannot go on with other images"));
  EXPECT_THAT(error_message([] { ImageBatcher(numbered(0), plain(3)); }), HasSubstr("there are no images"));
}

TEST(PlainBatchTest, PutsChannelsFirst) {
  const ImageSet set{.height = 1, .width = 2, .channels = 3, .pixels = {0, 51, 102, 255, 51, 0}, .labels = {4}};
  const std::vector<int64_t> chosen = {0};
  const ImageBatch batch = plain_batch(set, chosen, {.mean = {0.5, 0.2, 0}, .deviation = {0.5, 1, 0.4}});
  const auto near = [](double value) { return testing::FloatNear(static_cast<float>(value), 1e-6F); };
  EXPECT_THAT(batch.pixels, ElementsAre(near(-1), near(1), near(0), near(0), near(1), near(0)));
  EXPECT_THAT(batch.labels, ElementsAre(4));
}

}  // namespace
}  // namespace headshare
