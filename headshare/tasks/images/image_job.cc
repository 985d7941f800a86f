#include "headshare/tasks/images/image_job.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/data/hash.h"
#include "headshare/models/size.h"
#include "headshare/tasks/finetune/subset.h"
#include "headshare/tasks/images/image_task.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {
namespace {

constexpr const char* kPositions = "position_embedding";
constexpr const char* kHead = "head";
constexpr const char* kDistillationHead = "distillation_head";

// This task chooses the best epoch by the accuracy, as fine-tuning on other data does by its metrics.
class ImageTuningTask : public ImageTask {
 public:
  using ImageTask::ImageTask;

  Evaluation evaluate(Part part, const Task::Progress& progress) override {
    Evaluation found = ImageTask::evaluate(part, progress);
    found.goal = found.scores.front().value;
    return found;
  }
};

void keep_some(const std::optional<int64_t>& most, ImageSet* set) {
  if (!most || *most >= set->size()) return;
  const std::vector<char> marked = draw_subset(static_cast<size_t>(*most), static_cast<size_t>(set->size()));
  std::vector<int64_t> chosen;
  for (size_t at = 0; at < marked.size(); ++at) {
    if (marked[at]) chosen.push_back(static_cast<int64_t>(at));
  }
  *set = subset(*set, chosen);
}

std::vector<int64_t> counts_of(const ImageSet& set, size_t classes) {
  std::vector<int64_t> counts(classes);
  for (const int64_t label : set.labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

// Returns the options of the model that fine-tuning begins with.
VisionOptions starting_options(VisionOptions model, const std::vector<std::string>& classes,
                               const ImageTuningOptions& options, const FineTuneOptions& tuning) {
  model.image_size = options.image_size.value_or(model.image_size);
  model.classes = static_cast<int64_t>(classes.size());
  model.images.labels = classes;
  if (tuning.dropout) model.dropout = *tuning.dropout;
  if (tuning.attention_dropout) model.attention.attention_dropout = *tuning.attention_dropout;
  return resolve(model);
}

class ImageJob : public FineTuneJob {
 public:
  ImageJob(const ImageTuningOptions& options, const FineTuneOptions& tuning, const LoadedVision& trained,
           ImageData data)
      : FineTuneJob(kImageJob),
        model_(starting_options(trained.model->options(), data.classes, options, tuning)),
        where_((trained.directory / "model.safetensors").string()) {
    keep_some(tuning.train_examples, &data.train);
    keep_some(tuning.validation_examples, &data.validation);
    task_.batch_size = tuning.batch_size;
    task_.own<ImageTaskOptions>() = {.augmentation = options.augmentation, .class_smoothing = options.class_smoothing};
    data_ = std::make_shared<OpenedImages>(
        OpenedImages{.classes = std::move(data.classes),
                     .scale = {},
                     .train = std::make_shared<const ImageSet>(std::move(data.train)),
                     .validation = std::make_shared<const ImageSet>(std::move(data.validation)),
                     .test = std::make_shared<const ImageSet>(std::move(data.test))});
    take_weights(trained.model);
  }

  int64_t examples() const override { return data_->train->size(); }
  int64_t validation_examples() const override { return data_->validation->size(); }
  bool scores_test() const override { return !data_->test->empty(); }

  ClassCounts classes() const override {
    const std::vector<int64_t> counts = counts_of(*data_->train, data_->classes.size());
    ClassCounts all;
    for (size_t i = 0; i < counts.size(); ++i) all.emplace_back(data_->classes[i], counts[i]);
    return all;
  }

  std::optional<double> guessing(bool test) const override {
    const ImageSet& judged = test && scores_test() ? *data_->test : *data_->validation;
    const std::vector<int64_t> counts = counts_of(*data_->train, data_->classes.size());
    const auto frequent = static_cast<int64_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    return static_cast<double>(std::count(judged.labels.begin(), judged.labels.end(), frequent)) /
           static_cast<double>(judged.size());
  }

  std::string fingerprint() const override {
    ContentHash hash;
    for (const auto& set : {data_->train, data_->validation, data_->test}) hash.update(set->fingerprint() + "\n");
    for (const std::string& name : data_->classes) hash.update(name + "\n");
    return hash.hex();
  }

  void check_start(c10::Device device, TrainingShape shape) const override {
    shape.batch = task_.batch_size;
    shape.length = model_.context;
    shape.scored = 0;
    check_training_memory(training_bytes(model_, shape), device, shape, "use a smaller --batch-size or --image-size");
  }

  std::unique_ptr<Task> start(uint64_t seed, c10::Device device, TrainingShape shape) override {
    check_start(device, shape);
    auto task = std::make_unique<ImageTuningTask>(model_, task_, data_, seed, device, shape);
    load_shared_tensors(*task->model(), weights_, {kHead, kDistillationHead}, where_);
    return task;
  }

  std::vector<PartScores> judge(Task& task, const fs::path& directory, const Task::Progress& progress) override {
    std::vector<PartScores> all;
    for (const Part part : {Part::kValidation, Part::kTest}) {
      if (data_->part(part).empty()) continue;
      const Evaluation found = task.evaluate(part, progress);
      std::string answers = "index\tprediction\n";
      for (size_t i = 0; i < found.outputs.size(); ++i) answers += join_text(i, "\t", found.outputs[i], "\n");
      write_file(directory / (part_name(part) + ".tsv"), answers);
      all.push_back({.part = part_name(part), .scores = found.scores, .goal = *found.goal, .examples = found.targets});
    }
    return all;
  }

 private:
  // Takes the weights that the new model has, too, and notes what is made anew.
  void take_weights(const VisionTransformer& trained) {
    const at::NoGradGuard no_grad;
    const VisionOptions& before = trained->options();
    for (const auto& [name, tensor] : model_tensors(*trained)) weights_[name] = tensor.detach().clone();
    if (before.images.labels != model_.images.labels) {
      std::erase_if(weights_, [](const auto& one) {
        return one.first.starts_with(join_text(kHead, ".")) || one.first.starts_with(join_text(kDistillationHead, "."));
      });
      notes_.push_back(join_text("the head is new: the model told ", before.classes, " classes apart, and these are ",
                                 before.classes == model_.classes ? "others" : join_text(model_.classes)));
    }
    const auto positions = weights_.find(kPositions);
    if (positions == weights_.end() || before.image_size == model_.image_size) return;
    const int64_t from = before.image_size / before.patch_size, to = model_.image_size / model_.patch_size;
    positions->second = interpolated_positions(positions->second, leading_tokens(before), to, to).clone();
    notes_.push_back(join_text("positions of ", from, " x ", from, " patches are interpolated to ", to, " x ", to));
  }

  VisionOptions model_;
  std::string where_;
  NamedTensors weights_;
  TaskOptions task_;
  std::shared_ptr<const OpenedImages> data_;
};

}  // namespace

Fields fields(ImageTuningOptions& o) {
  Fields list = fields(o.data);
  list.push_back(field("image-size", &o.image_size,
                       "rows and columns of an image in pixels; auto: the model's. Learned positions are interpolated",
                       {.min = 1, .max = 1 << 14, .aliases = {"img-size"}}));
  append(&list, fields(o.augmentation));
  list.push_back(class_smoothing_field(&o.class_smoothing));
  return list;
}

std::unique_ptr<FineTuneJob> open_image_job(const ImageTuningOptions& options, const FineTuneOptions& tuning,
                                            const LoadedVision& trained, const ImageProgress& progress) {
  const VisionOptions& model = trained.model->options();
  const int64_t size = options.image_size.value_or(model.image_size);
  HS_CHECK(size % model.patch_size == 0, "--image-size ", size, " is no multiple of the model's patches of ",
           model.patch_size, " x ", model.patch_size, " pixels");
  ImageData data = open_images(options.data, size, model.channels, progress);
  return std::make_unique<ImageJob>(options, tuning, trained, std::move(data));
}

}  // namespace headshare
