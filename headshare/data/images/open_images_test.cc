#include "headshare/data/images/open_images.h"

#include <gmock/gmock.h>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class OpenImagesTest : public testing::Test {
 protected:
  // Writes images of one grey each as PNG files, below the folder of a class.
  void write_class(const std::string& name, const std::vector<int>& greys) {
    for (const int grey : greys) {
      write_image(name + "/" + std::to_string(grey) + ".png",
                  png_file({.height = 4, .width = 4, .channels = 1, .pixels = std::vector<uint8_t>(16, grey)}));
    }
  }
  void write_image(const std::string& name, const std::string& file) {
    make_directories((files_ / name).parent_path());
    write_file(files_ / name, file);
  }
  ImageData open(double validation = 0.5) const {
    return open_images({.images = files_.path().string(), .image_validation_fraction = validation}, 2, 3);
  }
  std::string refusal() const {
    return error_message([&] { open(); });
  }

  TemporaryDirectory files_;
};

TEST_F(OpenImagesTest, FoldersAreClassesInOrder) {
  write_class("train/dog", {20, 10});
  write_class("train/cat", {30});
  write_class("val/dog", {40});
  write_class("val/cat", {50});
  write_image("train/cat/.hidden", "no image");
  const ImageData data = open();
  EXPECT_THAT(data.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(data.train.labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(data.train.image(0)[0], 30);
  EXPECT_EQ(data.train.image(1)[0], 10);
  EXPECT_EQ(data.train.image(2).size(), 12u);
  EXPECT_EQ(data.validation.image(1)[0], 40);
  EXPECT_TRUE(data.test.empty());
  const ImageShape shape = image_shape({.images = files_.path().string()});
  EXPECT_EQ(shape.classes, 2);
  EXPECT_EQ(shape.channels, 3);
}

TEST_F(OpenImagesTest, AClassWhoseNameIsNotUtf8IsRefused) {
  write_class("train/caf\xe9", {20, 10});
  EXPECT_THAT(refusal(), HasSubstr("the name of the folder \"caf\uFFFD\" is not UTF-8"));
}

TEST_F(OpenImagesTest, OneFolderIsDividedOfEachClassAlike) {
  write_class("a", {1, 2, 3, 4, 5, 6});
  write_class("b", {11, 12});
  const ImageData data = open();
  EXPECT_THAT(data.train.labels, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(data.validation.labels, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(data.train.fingerprint(), open().train.fingerprint());
  EXPECT_NE(data.train.fingerprint(), data.validation.fingerprint());
}

TEST_F(OpenImagesTest, NamesAndCountsWhatCannotBeRead) {
  std::vector<int> greys(50);
  for (int i = 0; i < 50; ++i) greys[static_cast<size_t>(i)] = i;
  write_class("a", greys);
  write_class("b", greys);
  write_image("a/broken.png", png_file(random_image(4, 4, 3)).substr(0, 60));
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& text) { said += text; });
  const ImageData data = open(0.5);
  set_notice_handler(before);
  EXPECT_THAT(said, HasSubstr("1 of 101 images"));
  EXPECT_THAT(said, HasSubstr("broken.png"));
  EXPECT_EQ(data.train.size() + data.validation.size(), 100);
  write_image("b/text.txt", "no image");
  EXPECT_THAT(refusal(), HasSubstr("2 of 102 images"));
  EXPECT_THAT(refusal(), HasSubstr("more than --unreadable-fraction 0.01 allows: "));
  EXPECT_THAT(refusal(), HasSubstr("; "));
  EXPECT_THAT(refusal(), Not(HasSubstr("\n"))) << "the program shows a message as one line";
}

TEST_F(OpenImagesTest, RefusesASingleClass) {
  write_class("a", {1, 2, 3, 4});
  EXPECT_THAT(refusal(), HasSubstr("has images of one class, a; there is nothing to tell apart"));
}

TEST_F(OpenImagesTest, NamesAClassWithoutImages) {
  write_class("a", {1, 2});
  make_directories(files_ / "empty");
  EXPECT_THAT(refusal(), HasSubstr("the class empty has no image"));
}

TEST_F(OpenImagesTest, RefusesClassesThatNoneLearns) {
  write_class("train/a", {1, 2});
  write_class("test/a", {1});
  write_class("test/b", {1});
  EXPECT_THAT(refusal(), HasSubstr("is no class of the training images"));
}

TEST_F(OpenImagesTest, TakesIdxFilesByTheirNames) {
  write_image("train-images-idx3-ubyte", idx_file({4, 1, 1}, "abcd"));
  write_image("train-labels-idx1-ubyte", idx_file({4}, std::string("\0\1\0\1", 4)));
  write_image("t10k-images-idx3-ubyte", idx_file({1, 1, 1}, "e"));
  write_image("t10k-labels-idx1-ubyte", idx_file({1}, std::string("\1", 1)));
  const ImageData data = open();
  EXPECT_THAT(data.classes, ElementsAre("0", "1"));
  EXPECT_EQ(data.train.size(), 2);
  EXPECT_EQ(data.validation.size(), 2);
  EXPECT_EQ(data.test.image(0).size(), 12u);
  EXPECT_EQ(image_shape({.images = files_.path().string()}).channels, 1);
  write_image("train-labels-idx1-ubyte", idx_file({4}, std::string("\0\2\0\2", 4)));
  EXPECT_THAT(refusal(), HasSubstr("the class 1 has no training image"));
}

TEST_F(OpenImagesTest, SaysWhatIsMissing) {
  EXPECT_THAT(refusal(), HasSubstr("has no folder of images"));
  EXPECT_THAT(error_message([] { open_images({}, 2, 1); }), HasSubstr("give --images DIR"));
  EXPECT_THAT(error_message([] { open_images({.images = "nowhere"}, 2, 1); }), HasSubstr("is no directory"));
}

TEST(PixelScaleTest, IsTheMeanAndDeviationOfEachChannel) {
  const ImageSet set{.height = 1, .width = 2, .channels = 3, .pixels = {0, 51, 7, 255, 102, 7}, .labels = {0}};
  const PixelScale scale = pixel_scale(set);
  EXPECT_THAT(scale.mean, ElementsAre(0.5, testing::DoubleNear(0.3, 1e-12), testing::DoubleNear(7 / 255., 1e-12)));
  EXPECT_THAT(scale.deviation, ElementsAre(0.5, testing::DoubleNear(0.1, 1e-12), 1));
}

}  // namespace
}  // namespace headshare
