// A vision transformer learns the classes of images.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/data/images/image_batcher.h"
#include "headshare/models/size.h"
#include "headshare/tasks/images/image_options.h"
#include "headshare/tasks/judged_parts.h"
#include "headshare/train/task.h"

namespace headshare {

// OpenedImages are the data of a run: read once, shared by every model that is compared on them.
struct OpenedImages {
  std::vector<std::string> classes;
  PixelScale scale;  // of the training images
  std::shared_ptr<const ImageSet> train, validation, test;

  const ImageSet& part(Part part) const { return part == Part::kValidation ? *validation : *test; }
};

class ImageTask : public Task {
 public:
  // Makes a model of these options (resolved) with initial values of `seed`. Throws Error when training would not fit
  // into memory. The loop sets in `shape` whether blocks are recomputed and how many averages it keeps; the task sets
  // the rest.
  ImageTask(const VisionOptions& model, const TaskOptions& options, std::shared_ptr<const OpenedImages> data,
            uint64_t seed, c10::Device device, TrainingShape shape = {});

  std::shared_ptr<torch::nn::Module> model() override { return model_.ptr(); }
  DropoutClock& clock() override { return model_->clock(); }
  int64_t draw(int64_t micro_batches) override;
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }
  // Returns what evaluate_images() finds; the loss chooses the best model.
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  bool has(Part part) const override { return !data_->part(part).empty(); }
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state, const std::string& where) override;
  void save(const std::string& directory) override;
  double epochs() const override { return batcher_.epochs(); }

  VisionTransformer& classifier() { return model_; }

 private:
  double smoothing_;
  std::shared_ptr<const OpenedImages> data_;
  ImageBatcher batcher_;
  JudgedParts judged_;
  int64_t evaluation_batch_ = 1;
  VisionTransformer model_{nullptr};
  std::vector<ImageBatch> drawn_;
  std::optional<double> plain_ = {};
};

}  // namespace headshare
