#include "headshare/tasks/images/image_job.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/data/images/test_images.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

namespace image_job_test {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageJobTest : public testing::Test {
 protected:
  ImageJobTest() {
    write_part("train", 40, 4);
    write_part("t10k", 8, 4);
    VisionOptions options;
    options.layers = 1;
    options.attention.d_model = 16;
    options.attention.heads = 2;
    options.image_size = 4;
    options.patch_size = 2;
    options.channels = 1;
    options.classes = 4;
    options.images = {.labels = {"0", "1", "2", "3"}, .mean = {0.25}, .deviation = {0.5}};
    trained_.model = VisionTransformer(resolve(options));
    initialise(*trained_.model, 1);
    randomise(*trained_.model);
    trained_.model->eval();
    trained_.directory = "trained";
  }

  void write_part(const std::string& part, int64_t count, int64_t classes) const {
    std::string labels;
    for (int64_t i = 0; i < count; ++i) labels += static_cast<char>(i % classes);
    const Image all = random_image(count, 16, 1);
    write_file(files_ / (part + "-images-idx3-ubyte"),
               idx_file({count, 4, 4}, std::string(all.pixels.begin(), all.pixels.end())));
    write_file(files_ / (part + "-labels-idx1-ubyte"), idx_file({count}, labels));
  }

  std::unique_ptr<FineTuneJob> job(ImageTuningOptions options = {}, const FineTuneOptions& tuning = {}) const {
    options.data.images = files_.path().string();
    return open_image_job(options, tuning, trained_);
  }

  static NamedTensors started(FineTuneJob& job, uint64_t seed = 1) {
    return model_tensors(*job.start(seed, at::kCPU, {})->model());
  }

  TemporaryDirectory files_;
  LoadedVision trained_;
};

TEST_F(ImageJobTest, SameClassesKeepEveryWeight) {
  const auto same = job();
  EXPECT_THAT(same->notes(), ElementsAre());
  const NamedTensors before = model_tensors(*trained_.model), after = started(*same);
  EXPECT_EQ(before.size(), after.size());
  for (const auto& [name, tensor] : before) EXPECT_TRUE(at::equal(tensor, after.at(name))) << name;
}

TEST_F(ImageJobTest, OtherClassesGetANewHead) {
  write_part("train", 40, 3);
  write_part("t10k", 8, 3);
  const auto other = job();
  EXPECT_THAT(other->notes(),
              ElementsAre(HasSubstr("the head is new: the model told 4 classes apart, and these are 3")));
  const NamedTensors before = model_tensors(*trained_.model), first = started(*other, 1), second = started(*other, 2);
  for (const auto& [name, tensor] : first) {
    if (name == "head.weight") {
      EXPECT_EQ(tensor.sizes(), at::IntArrayRef({3, 16}));
      EXPECT_FALSE(at::equal(tensor, second.at(name)));
    } else if (name != "head.bias") {
      EXPECT_TRUE(at::equal(tensor, before.at(name))) << name;
    }
  }
}

TEST_F(ImageJobTest, PositionsFollowTheSizeOfImages) {
  const auto larger = job({.image_size = 8});
  EXPECT_THAT(larger->notes(), ElementsAre("positions of 2 x 2 patches are interpolated to 4 x 4"));
  const Tensor learned = model_tensors(*trained_.model).at("position_embedding").detach();
  const Tensor found = started(*larger).at("position_embedding");
  EXPECT_TRUE(at::equal(found, interpolated_positions(learned, /*leading=*/1, 4, 4)));
  EXPECT_THAT(error_message([&] { job({.image_size = 7}); }), HasSubstr("--image-size 7 is no multiple"));
}

TEST_F(ImageJobTest, IsJudgedByTheAccuracy) {
  const auto one = job({}, {.train_examples = 20, .validation_examples = 3});
  EXPECT_EQ(one->examples(), 20);
  EXPECT_EQ(one->validation_examples(), 3);
  EXPECT_TRUE(one->scores_test());
  EXPECT_EQ(*one->guessing(/*test=*/true), 0.25);
  const std::unique_ptr<Task> task = one->start(1, at::kCPU, {});
  task->model()->eval();
  const std::vector<PartScores> parts = one->judge(*task, files_.path(), {});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].part, "test");
  EXPECT_EQ(parts[1].examples, 8);
  EXPECT_EQ(parts[1].goal, parts[1].scores.front().value);
  EXPECT_EQ(parts[1].scores.front().name, "accuracy");
  const std::string answers = read_file(files_ / "test.tsv");
  EXPECT_THAT(answers, testing::StartsWith("index\tprediction\n0\t"));
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 9);
  int64_t right = 0;
  for (int64_t i = 0; i < 8; ++i) right += answers.find(join_text("\n", i, "\t", i % 4, "\n")) != std::string::npos;
  EXPECT_EQ(static_cast<double>(right) / 8, parts[1].goal);
}

TEST_F(ImageJobTest, TheFingerprintKnowsEachImage) {
  const std::string before = job()->fingerprint();
  EXPECT_EQ(job()->fingerprint(), before);
  write_part("t10k", 12, 4);
  EXPECT_NE(job()->fingerprint(), before);
}

}  // namespace image_job_test
}  // namespace
}  // namespace headshare
