#include "headshare/data/images/binary_images.h"

#include <gmock/gmock.h>

#include <numeric>

#include "headshare/base/testing.h"
#include "headshare/data/images/test_images.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class IdxTest : public testing::Test {
 protected:
  std::string refusal(const std::string& images, const std::string& labels) {
    write_file(images_, images);
    write_file(labels_, labels);
    return error_message([&] { read_idx(images_, labels_); });
  }

  TemporaryDirectory files_;
  fs::path images_ = files_ / "train-images-idx3-ubyte", labels_ = files_ / "train-labels-idx1-ubyte";
};

TEST_F(IdxTest, ReadsImagesAndLabels) {
  write_file(images_, idx_file({2, 1, 3}, "abcdef"));
  write_file(labels_, idx_file({2}, "\x05\x02"));
  const ImageSet set = read_idx(images_, labels_);
  EXPECT_EQ(set.height, 1);
  EXPECT_EQ(set.width, 3);
  EXPECT_EQ(set.channels, 1);
  EXPECT_THAT(set.labels, ElementsAre(5, 2));
  EXPECT_THAT(set.image(1), ElementsAre('d', 'e', 'f'));
  EXPECT_EQ(idx_shape(images_).width, 3);
}

TEST_F(IdxTest, RefusesWhatDoesNotFit) {
  const std::string labels = idx_file({2}, "ab");
  EXPECT_THAT(refusal("PK", labels), HasSubstr("is no IDX file"));
  EXPECT_THAT(refusal(idx_file({2, 1, 2}, "abc"), labels), HasSubstr("ends after 3 of the 4 bytes"));
  EXPECT_THAT(refusal(idx_file({2, 1, 2}, "abcde"), labels), HasSubstr("goes on behind the 4 bytes"));
  EXPECT_THAT(refusal(idx_file({3, 1, 1}, "abc"), labels), HasSubstr("has 3 images"));
  EXPECT_THAT(refusal(idx_file({2, 1}, "ab"), labels), HasSubstr("has 2 dimensions; images have 3 or 4"));
  EXPECT_THAT(refusal(idx_file({2, 100000, 100000}, "ab"), labels), HasSubstr("100000 x 100000 pixels"));
  EXPECT_THAT(refusal(idx_file({1, 1, 1, 2}, "ab"), idx_file({1}, "a")), HasSubstr("2 channels"));
  std::string floats = idx_file({2}, "ab");
  floats[2] = 0x0D;
  EXPECT_THAT(refusal(idx_file({2, 1, 1}, "ab"), floats), HasSubstr("IDX type 13"));
}

TEST(Cifar10Test, ReadsRecordsOfPlanes) {
  const TemporaryDirectory files;
  std::string record(1 + 3072, '\0');
  record[0] = 7;
  for (size_t i = 1; i < record.size(); ++i) record[i] = static_cast<char>(1 + (i - 1) / 1024);
  write_file(files / "a.bin", record + record);
  record[0] = 3;
  write_file(files / "b.bin", record);
  const ImageSet set = read_cifar10({files / "a.bin", files / "b.bin"});
  EXPECT_THAT(set.labels, ElementsAre(7, 7, 3));
  EXPECT_EQ(set.image(2)[0], 1);
  EXPECT_EQ(set.image(2)[1], 2);
  EXPECT_EQ(set.image(2)[3071], 3);
}

TEST(Cifar10Test, RefusesOtherFiles) {
  const TemporaryDirectory files;
  write_file(files / "a.bin", std::string(3072, '\0'));
  EXPECT_THAT(error_message([&] { read_cifar10({files / "a.bin"}); }), HasSubstr("ends after 3072 of the 3073 bytes"));
  write_file(files / "a.bin", std::string(3073, '\x0A'));
  EXPECT_THAT(error_message([&] { read_cifar10({files / "a.bin"}); }), HasSubstr("has the class 10"));
}

// MNIST's authors published how often each digit occurs.
TEST(MnistTest, HasItsPublishedCounts) {
  HS_NEEDS_DATA("mnist/t10k-images-idx3-ubyte.gz");
  const fs::path home = test_data_folder() / "mnist";
  const ImageSet set = read_idx(home / "t10k-images-idx3-ubyte.gz", home / "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(set.size(), 10000);
  EXPECT_EQ(set.height, 28);
  std::vector<int64_t> counts(10);
  for (const int64_t label : set.labels) ++counts.at(static_cast<size_t>(label));
  EXPECT_THAT(counts, ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
}

}  // namespace
}  // namespace headshare
