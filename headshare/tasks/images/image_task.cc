#include "headshare/tasks/images/image_task.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/image_tensors.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/images/evaluate_images.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {
namespace {

constexpr int64_t kNoIgnoredClass = -100;  // no label has this number

// Returns the loss of images that may be mixed of two: the mean of the losses at both classes, by their shares.
Tensor mixed_loss(const Tensor& scores, const ImageTensors& images, double smoothing) {
  const auto loss = [&](const Tensor& labels) {
    return at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum, kNoIgnoredClass, smoothing);
  };
  if (!images.mixed_labels.defined()) return loss(images.labels);
  return images.share * loss(images.labels) + (1 - images.share) * loss(images.mixed_labels);
}

}  // namespace

ImageTask::ImageTask(const VisionOptions& model, const TaskOptions& options, std::shared_ptr<const OpenedImages> data,
                     uint64_t seed, c10::Device device, TrainingShape shape)
    : smoothing_(options.own<ImageTaskOptions>().class_smoothing),
      data_(std::move(data)),
      batcher_(data_->train, {.batch_size = options.batch_size,
                              .seed = seed,
                              .scale = scale_of(model),
                              .augmentation = options.own<ImageTaskOptions>().augmentation}),
      judged_{.validation = data_->validation->fingerprint(), .test = data_->test->fingerprint()} {
  shape.batch = batcher_.batch_images();
  shape.length = model.context;
  shape.scored = 0;
  evaluation_batch_ = evaluation_batch(model, shape);
  check_training_memory(training_bytes(model, shape), device, shape,
                        "use a smaller --batch-size or --d-model, or larger patches");
  model_ = VisionTransformer(model);
  prepare(model_, seed, device, shape);
}

int64_t ImageTask::draw(int64_t micro_batches) {
  drawn_.clear();
  for (int64_t i = 0; i < micro_batches; ++i) drawn_.push_back(batcher_.next());
  return micro_batches * batcher_.batch_images();
}

Tensor ImageTask::loss_sum(int64_t index) {
  const ImageTensors images =
      image_tensors(std::move(drawn_.at(static_cast<size_t>(index))), model_->options(), model_->device());
  const Tensor scores = model_->scores(images.pixels);
  if (smoothing_ > 0) plain_ = mixed_loss(scores.detach(), images, 0).item<double>();
  return mixed_loss(scores, images, smoothing_);
}

Evaluation ImageTask::evaluate(Part part, const Task::Progress& progress) {
  const EvaluationMode evaluating(model());
  return evaluate_images(model_, data_->part(part), evaluation_batch_, progress);
}

nlohmann::json ImageTask::state() const {
  nlohmann::json state = {{"images", to_json(batcher_.state())}};
  note_judged(judged_, &state);
  return state;
}

void ImageTask::restore(const nlohmann::json& state, const std::string& where) {
  HS_CHECK(state.is_object() && state.contains("images"), where, ": the place in the images is missing");
  batcher_.restore(image_batch_state_from_json(state.at("images"), where));
  check_judged(judged_, state, where);
}

void ImageTask::save(const std::string& directory) { save_model(directory, model_, nullptr); }

}  // namespace headshare
