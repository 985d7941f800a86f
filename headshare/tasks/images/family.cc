// The family of images trains vision transformers on labelled images.
#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/strings/base64.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/images/encode_png.h"
#include "headshare/data/images/resize.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/images/evaluate_images.h"
#include "headshare/tasks/images/image_start.h"
#include "headshare/tasks/images/image_task.h"

namespace headshare {
namespace {

constexpr const char* kImageTask = "image";
constexpr const char* kUnit = "images";

// Returns the share of the most frequent class, which is what guessing reaches.
double largest_class(const ImageSet& set) {
  std::map<int64_t, int64_t> counts;
  int64_t largest = 0;
  for (const int64_t label : set.labels) largest = std::max(largest, ++counts[label]);
  return static_cast<double>(largest) / static_cast<double>(std::max<int64_t>(set.size(), 1));
}

class ImageExperiment : public Experiment {
 public:
  ImageExperiment(ImageData data, const std::string& directory) : name_(fs::path(directory).filename().string()) {
    data_ = std::make_shared<OpenedImages>(
        OpenedImages{.classes = std::move(data.classes),
                     .scale = pixel_scale(data.train),
                     .train = std::make_shared<const ImageSet>(std::move(data.train)),
                     .validation = std::make_shared<const ImageSet>(std::move(data.validation)),
                     .test = std::make_shared<const ImageSet>(std::move(data.test))});
  }

  Subject subject() const override {
    Subject subject;
    subject.name = kImageTask;
    subject.sentence = "Tell the classes of images.";
    subject.data = description_of_images();
    subject.measure = "accuracy";
    subject.direction = Direction::kHigherIsBetter;
    subject.block = "images";
    subject.unit = kUnit;
    subject.has_test_part = has(Part::kTest);
    subject.chance = largest_class(data_->part(subject.has_test_part ? Part::kTest : Part::kValidation));
    subject.examples = examples(data_->part(subject.has_test_part ? Part::kTest : Part::kValidation));
    subject.fingerprint =
        join_text(data_->train->fingerprint(), data_->validation->fingerprint(), data_->test->fingerprint());
    return subject;
  }

  bool has(Part part) const override { return !data_->part(part).empty(); }

  ModelOptions model(const TaskOptions& options) const override {
    return image_model(options, data_->classes, data_->scale);
  }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    const VisionOptions model = image_model(options, data_->classes, data_->scale);
    auto task = std::make_unique<ImageTask>(model, options, data_, seed, device, shape);
    const VisionTransformer classifier = task->classifier();
    return {std::move(task), model, classifier.ptr()};
  }

  void share(const fs::path&, TaskOptions*) const override {}

 private:
  // Returns a few images from all over the part, no larger than a page shows them.
  std::vector<WrittenExample> examples(const ImageSet& set) const {
    constexpr int64_t kExamples = 12, kMostShown = 128;
    std::vector<WrittenExample> list;
    const int64_t count = std::min(kExamples, set.size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t item = i * set.size() / count;
      const std::span<const uint8_t> pixels = set.image(item);
      Image image{
          .height = set.height, .width = set.width, .channels = set.channels, .pixels = {pixels.begin(), pixels.end()}};
      if (set.height > kMostShown) image = resized(image, kMostShown, kMostShown);
      const auto label = static_cast<size_t>(set.labels[static_cast<size_t>(item)]);
      list.push_back(
          {.item = item, .input = "", .reference = data_->classes[label], .image = to_base64(encode_png(image))});
    }
    return list;
  }

  std::string description_of_images() const {
    const auto count = [](const ImageSet& set) { return format_count(static_cast<double>(set.size())); };
    const ImageSet& train = *data_->train;
    return join_text(name_, ": ", count(train), " + ", count(*data_->validation), " + ", count(*data_->test),
                     " images to train, validate and test on; ", train.height, " x ", train.width, " pixels, ",
                     train.channels == 1 ? "grey" : "colour", ", ", data_->classes.size(), " classes");
  }

  std::string name_;
  std::shared_ptr<const OpenedImages> data_;
};

class ImagesFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override { return {kImageTask}; }
  std::string learns() const override { return "the classes of images (vision transformers)"; }
  std::string heading() const override { return "Images"; }
  std::string unit() const override { return kUnit; }
  bool trains_alone() const override { return true; }

  Fields fields(TaskOptions& options) const override { return headshare::fields(options.own<ImageTaskOptions>()); }
  Fields model_fields(TaskOptions& options) const override {
    Fields list = {norms_field(&options.model.norms)};
    append(&list, headshare::fields(options.own<ImageTaskOptions>().model));
    return list;
  }
  // Lists options of running text; check() refuses --context.
  std::vector<std::string> idle_options(const TaskOptions& options) const override {
    std::vector<std::string> names = {"tie-embeddings"};
    if (options.own<ImageTaskOptions>().augmentation.rand_augment == 0) names.emplace_back("rand-augment-magnitude");
    return names;
  }
  std::vector<std::string*> paths(TaskOptions& options) const override {
    return {&options.own<ImageTaskOptions>().data.images};
  }

  // The directory decides how large images and patches are.
  void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const override {
    set_image_defaults(asked.own<ImageTaskOptions>().data, options);
    train->steps = 3000;
    train->schedule.learning_rate = 2e-3;
    train->optimizer.weight_decay = 0.05;
    train->optimizer.beta2 = 0.999;
  }
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    struct Sizes {
      int64_t layers, d_model, heads, steps;
    };
    const Sizes sizes = preset == Preset::kQuick   ? Sizes{4, 64, 4, 1500}
                        : preset == Preset::kSmall ? Sizes{4, 64, 4, 3000}
                                                   : Sizes{12, 192, 3, 20000};
    options->model.layers = sizes.layers;
    options->model.attention.d_model = sizes.d_model;
    options->model.attention.heads = sizes.heads;
    train->steps = sizes.steps;
  }

  void check(const TaskOptions& options, const TaskOptions& untouched) const override {
    HS_CHECK(options.model.context == untouched.model.context,
             "--context is a text model's; an image has as many tokens as patches (--image-size, --patch-size)");
    const ImageTaskOptions& own = options.own<ImageTaskOptions>();
    HS_CHECK(own.model.channels == 1 || own.model.channels == 3, "--channels is ", own.model.channels,
             "; images are read as 1 (grey) or 3 (colour)");
  }

  ModelOptions likely_model(const TaskOptions& options) const override { return likely_image_model(options); }
  void set_shape(const TaskOptions& options, const ModelOptions& model, TrainingShape* shape) const override {
    TaskFamily::set_shape(options, model, shape);
    shape->scored = 0;
  }

  bool scores(const ModelOptions& model) const override {
    const auto* vision = model.find<VisionOptions>();
    return vision != nullptr && vision->classes > 0;
  }
  void fit_start(const ModelOptions& start, const torch::nn::Module& model, NamedTensors* tensors) const override {
    const auto* made = model.as<VisionTransformer>();
    HS_DCHECK(made != nullptr);
    fit_image_start(start.as<VisionOptions>(), made->options(), tensors);
  }
  Fields scoring_fields(TaskOptions& options) const override {
    return scoring_fields_of_images(options.own<ImageTaskOptions>());
  }
  TextScores score(const TextToScore& asked, const TaskOptions& options) const override {
    return score_images(asked, options.own<ImageTaskOptions>());
  }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    const ImageTaskOptions& own = options.own<ImageTaskOptions>();
    const auto show = [&progress](int64_t done, int64_t total) {
      if (!progress) return;
      progress({.stage = "decoding", .done = static_cast<uint64_t>(done), .total = static_cast<uint64_t>(total)});
    };
    return std::make_unique<ImageExperiment>(open_images(own.data, own.model.image_size, own.model.channels, show),
                                             own.data.images);
  }
};

}  // namespace

const TaskFamily& images_family() {
  static const ImagesFamily family;
  return family;
}

}  // namespace headshare
