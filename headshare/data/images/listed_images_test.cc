#include "headshare/data/images/listed_images.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/data/images/resize.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ListedImagesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((files_ / name).parent_path());
    write_file(files_ / name, content);
  }

  TemporaryDirectory files_;
};

TEST_F(ListedImagesTest, GivesEachImageOnceInOrder) {
  const Image grey = random_image(4, 4, 1, 1), wide = random_image(4, 6, 3, 2);
  write("b.png", png_file(grey));
  write("folder/z.png", png_file(wide));
  write("folder/inner/a.jpg", jpeg_file(random_image(5, 5, 3)));
  write("folder/.hidden", "no image");
  write("folder/t10k-images-idx3-ubyte", idx_file({3, 2, 2}, std::string(12, '\7')));
  write("folder/t10k-labels-idx1-ubyte", idx_file({3}, std::string(3, '\1')));
  ListedImages images({path("b.png"), path("folder")}, 4, 3);
  EXPECT_EQ(images.count(), 6);
  std::vector<std::string> names;
  std::vector<uint8_t> pixels;
  while (!images.ended()) {
    const ReadImages read = images.next(2);
    EXPECT_LE(read.set.size(), 2);
    EXPECT_THAT(read.failures, ElementsAre());
    EXPECT_EQ(read.names.size(), read.set.labels.size());
    names.insert(names.end(), read.names.begin(), read.names.end());
    pixels.insert(pixels.end(), read.set.pixels.begin(), read.set.pixels.end());
  }
  EXPECT_THAT(names, ElementsAre(path("b.png"), path("folder/inner/a.jpg"), path("folder/t10k-images-idx3-ubyte[0]"),
                                 path("folder/t10k-images-idx3-ubyte[1]"), path("folder/t10k-images-idx3-ubyte[2]"),
                                 path("folder/z.png")));
  const Image first = with_channels(grey, 3, ""), last = squared(wide, 4);
  ASSERT_EQ(pixels.size(), 6 * first.pixels.size());
  EXPECT_TRUE(std::equal(first.pixels.begin(), first.pixels.end(), pixels.begin()));
  EXPECT_TRUE(std::equal(last.pixels.rbegin(), last.pixels.rend(), pixels.rbegin()));
}

TEST_F(ListedImagesTest, NamesWhatCannotBeRead) {
  const std::string whole = png_file(random_image(8, 8, 1));
  write("cut.png", whole.substr(0, whole.size() / 2));
  write("colour.png", png_file(random_image(8, 8, 3)));
  write("print.jpg", jpeg_file(random_image(8, 8, 4)));
  write("good.png", whole);
  ListedImages images({files_.path().string()}, 8, 1);
  const ReadImages read = images.next(9);
  EXPECT_THAT(read.names, ElementsAre(path("good.png")));
  EXPECT_THAT(read.failures,
              ElementsAre(HasSubstr("colour.png has 3 channels"), HasSubstr("cut.png"), HasSubstr("print.jpg")));
  EXPECT_THAT(read.failures.back(), HasSubstr("CMYK"));
  EXPECT_TRUE(images.ended());
}

TEST_F(ListedImagesTest, RefusesPathsWithoutImages) {
  EXPECT_THAT(error_message([&] { ListedImages({path("none.png")}, 8, 1); }), HasSubstr("none.png does not exist"));
  fs::create_directory(files_ / "empty");
  EXPECT_THAT(error_message([&] { ListedImages({path("empty")}, 8, 1); }), HasSubstr("empty has no image"));
  write("t10k-images-idx3-ubyte", idx_file({3, 2, 2}, "short"));
  EXPECT_THAT(error_message([&] { ListedImages({path("t10k-images-idx3-ubyte")}, 8, 1); }), HasSubstr("ends after"));
}

}  // namespace
}  // namespace headshare
