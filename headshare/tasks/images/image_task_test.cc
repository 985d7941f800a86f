#include "headshare/tasks/images/image_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/strings/base64.h"
#include "headshare/base/testing.h"
#include "headshare/data/images/binary_images.h"
#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/test_images.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/image_tensors.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/images/evaluate_images.h"
#include "headshare/tasks/start_from.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// Images of 4 x 4 pixels: of class i, quarter i is bright; the rest is noise.
class ImageTaskTest : public testing::Test {
 protected:
  static constexpr int64_t kClasses = 4;

  ImageTaskTest() {
    write_part("train", 64);
    write_part("t10k", 16);
  }

  void write_part(const std::string& part, int64_t count, int64_t classes = kClasses, int64_t dark = 0) const {
    std::string labels, pixels;
    Philox random(7);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = i % classes;
      labels += static_cast<char>(label);
      for (int64_t at = 0; at < 16; ++at) {
        const bool bright = at / 8 == label / 2 && at % 4 / 2 == label % 2;
        pixels += static_cast<char>((bright ? 128 : dark) + static_cast<int64_t>(random.below(64)));
      }
    }
    write_file(files_ / (part + "-images-idx3-ubyte"), idx_file({count, 4, 4}, pixels));
    write_file(files_ / (part + "-labels-idx1-ubyte"), idx_file({count}, labels));
  }

  TaskOptions task_options() const {
    TaskOptions options;
    options.task = "image";
    TaskOptions asked;
    asked.own<ImageTaskOptions>().data.images = files_.path().string();
    TrainOptions train;
    task_family("image").set_defaults(asked, &options, &train);
    ImageTaskOptions& own = options.own<ImageTaskOptions>();
    own.data = {.images = files_.path().string(), .image_validation_fraction = 0.25};
    own.model.patch_size = 2;
    own.augmentation = {};
    options.model.layers = 1;
    options.model.attention.d_model = 16;
    options.model.attention.heads = 2;
    options.batch_size = 8;
    return options;
  }
  static std::unique_ptr<Task> task_of(const TaskOptions& options) {
    return task_family("image").open(options, {})->trial(options, 1, at::kCPU, {}).task;
  }
  TextScores scored(const std::string& model, const ImageTaskOptions& options) const {
    TextToScore asked;
    asked.model = (files_ / model).string();
    return score_images(asked, options);
  }

  TemporaryDirectory files_;
};

TrainOptions image_training(int64_t steps) {
  TrainOptions options{.steps = steps, .evaluate_every = 20, .log_every = 10};
  options.schedule.learning_rate = 1e-2;
  return options;
}

TEST_F(ImageTaskTest, LearnsToTellClasses) {
  TaskOptions options = task_options();
  options.own<ImageTaskOptions>().class_smoothing = 0.1;
  const std::unique_ptr<Task> task = task_of(options);
  const Evaluation before = task->evaluate(Part::kTest, {});
  EXPECT_EQ(before.targets, 16);
  EXPECT_EQ(before.scores.size(), 1u);  // of 4 classes, five are no fewer
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  Trainer(*task, image_training(300), run, {}).run();
  const Evaluation after = task->evaluate(Part::kTest, {});
  EXPECT_EQ(after.scores[0].value, 1);
  EXPECT_FALSE(after.goal);  // cells of a comparison note a loss
  EXPECT_EQ(after.blocks, std::vector<double>(16, 1));
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(after.outputs.at(i), std::to_string(i % kClasses));
  EXPECT_LT(after.loss, before.loss / 4);
}

TEST_F(ImageTaskTest, SavesWhatIsEvaluated) {
  const TaskOptions options = task_options();
  const std::unique_ptr<Task> task = task_of(options);
  task->save((files_ / "model").string());
  const ImageTaskOptions& own = options.own<ImageTaskOptions>();
  const Evaluation test = task->evaluate(Part::kTest, {}), validation = task->evaluate(Part::kValidation, {});
  EXPECT_EQ(scored("model", own).object.at("loss"), test.loss);
  EXPECT_EQ(scored("model", own).object.at("accuracy"), test.scores[0].value);
  ImageTaskOptions other = own;
  other.score = ImagesToScore::kValidation;
  EXPECT_NEAR(scored("model", other).object.at("loss"), validation.loss, 1e-6);
  const VisionOptions model = load_vision_model(files_ / "model").model->options();
  EXPECT_THAT(model.images.labels, testing::ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(model.images.mean.size(), 1u);
  write_part("train", 64, 3);
  write_part("t10k", 3, 3);
  EXPECT_THAT(error_message([&] { scored("model", own); }), HasSubstr("has 3 classes, and the model tells 4 apart"));
}

// Other images have another mean and deviation: the first weights follow them, so that the model computes the same.
TEST_F(ImageTaskTest, StartsFromAModelOfOtherImages) {
  const TaskOptions options = task_options();
  task_of(options)->save((files_ / "model").string());
  write_part("train", 64, kClasses, /*dark=*/50);
  const ImageTaskOptions& own = options.own<ImageTaskOptions>();
  const StartModel start = open_start(files_ / "model");
  EXPECT_EQ(start_task(start), "image");
  TaskOptions taken = options;
  taken.model.attention.heads = 4;
  take_options(start, &taken);
  EXPECT_EQ(taken.model.attention.heads, 2);
  const auto given = [](const std::string&) { return false; };
  EXPECT_TRUE(keep_to_start(start, given, &taken).empty());
  const std::unique_ptr<Task> task = task_of(taken);
  load_start(start, *task->model());
  EXPECT_NEAR(task->evaluate(Part::kTest, {}).loss, scored("model", own).object.at("loss").get<double>(), 1e-5);
  taken.own<ImageTaskOptions>().model.patch_size = 1;
  EXPECT_THAT(error_message([&] { keep_to_start(start, given, &taken); }), HasSubstr("--patch-size is 1"));
  write_part("train", 64, 3);
  write_part("t10k", 3, 3);
  const std::unique_ptr<Task> fewer = task_of(options);
  EXPECT_THAT(error_message([&] { load_start(start, *fewer->model()); }),
              HasSubstr("4 classes apart, and the images have 3"));
}

// The loss of mixed images is the mean of the losses at both classes.
TEST_F(ImageTaskTest, MixedImagesHaveTwoClasses) {
  TaskOptions options = task_options();
  options.own<ImageTaskOptions>().augmentation.mixup = 1;
  const auto experiment = task_family("image").open(options, {});
  const Trial trial = experiment->trial(options, 1, at::kCPU, {});
  EXPECT_EQ(trial.task->draw(1), 8);
  const double loss = trial.task->loss_sum(0).item<double>();
  const VisionTransformer model(std::dynamic_pointer_cast<VisionTransformerImpl>(trial.model));
  const ImageData data = open_images(options.own<ImageTaskOptions>().data, 4, 1);
  ImageBatcher batcher(std::make_shared<ImageSet>(data.train),
                       {.batch_size = 8, .seed = 1, .scale = scale_of(model->options()), .augmentation = {.mixup = 1}});
  const ImageTensors images = image_tensors(batcher.next(), model->options(), at::kCPU);
  const Tensor chances = at::log_softmax(model->scores(images.pixels), 1);
  double expected = 0;
  for (int64_t row = 0; row < 8; ++row) {
    const auto at = [&](const Tensor& labels) { return -chances[row][labels[row]].item<double>(); };
    expected += images.share * at(images.labels) + (1 - images.share) * at(images.mixed_labels);
  }
  EXPECT_NEAR(loss, expected, 1e-4);
}

TEST(ImageTensors, PixelsOfAnotherSizeAreRefused) {
  VisionOptions model;
  model.image_size = 2;
  model.channels = 1;
  const auto made = [&](size_t numbers) {
    return error_message(
        [&] { image_tensors({.pixels = std::vector<float>(numbers), .labels = {0}}, model, at::kCPU); });
  };
  EXPECT_EQ(made(4), "no error");
  EXPECT_THAT(made(3), HasSubstr("a batch has 3 numbers"));
}

// A run that is stopped after 7 of 14 steps and continued is the same as one that did not stop.
TEST_F(ImageTaskTest, GoesOnBitForBit) {
  TaskOptions options = task_options();
  options.model.dropout = 0.2;
  options.own<ImageTaskOptions>().augmentation = {.crop_padding = 1, .flip = true, .rand_augment = 1, .mixup = 0.3};
  const auto weights_after = [&](const std::vector<int64_t>& ends) {
    const TemporaryDirectory home;
    NamedTensors weights;
    for (const int64_t end : ends) {
      const std::unique_ptr<Task> task = task_of(options);
      RunDirectory run(home.path());
      TrainOptions training = image_training(14);
      training.save_every = 7;
      Trainer trainer(*task, training, run, {},
                      [&] { return end < 14 && fs::exists(home.path() / "checkpoints" / "step-7"); });
      trainer.resume();
      try {
        trainer.run();
      } catch (const Interrupted&) {
        EXPECT_LT(end, 14);
      }
      weights = model_tensors(*task->model());
    }
    return weights;
  };
  const NamedTensors whole = weights_after({14}), parts = weights_after({7, 14});
  for (const auto& [name, tensor] : whole) EXPECT_TRUE(at::equal(tensor, parts.at(name))) << name;
}

TEST_F(ImageTaskTest, GoesOnWithTheSameImagesOnly) {
  const nlohmann::json state = task_of(task_options())->state();
  EXPECT_EQ(error_message([&] { task_of(task_options())->restore(state, "here"); }), "no error");
  write_part("t10k", 12);
  EXPECT_THAT(error_message([&] { task_of(task_options())->restore(state, "here"); }), HasSubstr("another test part"));
  write_part("train", 80);
  EXPECT_THAT(error_message([&] { task_of(task_options())->restore(state, "here"); }), HasSubstr("other images"));
}

TEST_F(ImageTaskTest, TheDirectorySetsDefaults) {
  const TaskOptions options = task_options();
  const VisionParts& model = options.own<ImageTaskOptions>().model;
  EXPECT_EQ(model.image_size, 4);
  EXPECT_EQ(model.channels, 1);
  EXPECT_EQ(task_family("image").likely_model(options).as<VisionOptions>().classes, 10);
  const Subject subject = task_family("image").open(options, {})->subject();
  EXPECT_THAT(subject.data, HasSubstr("48 + 16 + 16 images"));
  EXPECT_EQ(*subject.chance, 0.25);
  EXPECT_EQ(subject.unit, "images");
}

TEST_F(ImageTaskTest, ExamplesAreTestImages) {
  const Subject subject = task_family("image").open(task_options(), {})->subject();
  const ImageSet test = read_idx(files_ / "t10k-images-idx3-ubyte", files_ / "t10k-labels-idx1-ubyte");
  ASSERT_EQ(subject.examples.size(), 12u);
  for (const WrittenExample& one : subject.examples) {
    const std::span<const uint8_t> pixels = test.image(one.item);
    const Image shown = decode_image(from_base64(one.image, "x"), "x");
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), shown.pixels.begin(), shown.pixels.end())) << one.item;
    EXPECT_EQ(one.reference, std::to_string(one.item % kClasses));
  }
}

TEST_F(ImageTaskTest, RefusesWhatImagesHaveNot) {
  const auto refusal = [&](const std::function<void(TaskOptions&)>& change) {
    TaskOptions options = task_options();
    const TaskOptions untouched = options;
    change(options);
    return error_message([&] { check_task(options, untouched, {options}); });
  };
  EXPECT_THAT(refusal([](TaskOptions& o) { o.model.context = 32; }), HasSubstr("--context is a text model's"));
  EXPECT_THAT(refusal([](TaskOptions& o) { o.own<ImageTaskOptions>().model.channels = 2; }),
              HasSubstr("--channels is 2"));
  EXPECT_THAT(refusal([](TaskOptions& o) { o.own<TextOptions>().data.text = {"book.txt"}; }),
              HasSubstr("--text is about text"));
}

}  // namespace
}  // namespace headshare
