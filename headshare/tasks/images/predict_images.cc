#include "headshare/tasks/images/predict_images.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/models/image_tensors.h"

namespace headshare {
namespace {

constexpr int64_t kReadAtOnce = 64;

}  // namespace

std::vector<int64_t> ImagePrediction::likeliest(int64_t most) const {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
    return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(std::min<int64_t>(most, static_cast<int64_t>(order.size()))));
  return order;
}

ImagePredictor::ImagePredictor(LoadedVision model, c10::Device device)
    : model_(std::move(model.model)), directory_(std::move(model.directory)) {
  HS_CHECK(classes() > 0, directory_.string(),
           " has no head that tells classes; `headshare finetune MODEL --images DIR` gives it one");
  model_->to(device);
}

ListedImages ImagePredictor::list(const std::vector<std::string>& paths) const {
  return {paths, model_->options().image_size, model_->options().channels};
}

void ImagePredictor::predict(ListedImages images, const std::function<void(const ImagePrediction&)>& take,
                             const Task::Progress& progress) {
  const at::NoGradGuard no_grad;
  const VisionOptions& options = model_->options();
  for (int64_t done = 0; !images.ended();) {
    ReadImages read = images.next(kReadAtOnce);
    for (const std::string& failure : read.failures) take({.image = "", .failure = failure});
    done += read.set.size() + static_cast<int64_t>(read.failures.size());
    if (!read.set.empty()) {
      std::vector<int64_t> all(read.names.size());
      std::iota(all.begin(), all.end(), int64_t{0});
      const ImageTensors tensors =
          image_tensors(plain_batch(read.set, all, scale_of(options)), options, model_->device());
      const Tensor scores = model_->scores(tensors.pixels).to(at::kCPU, at::kDouble);  // [B, classes]
      HS_CHECK(at::isfinite(scores).all().item<bool>(), "the scores that ", directory_.string(),
               " gives are not finite numbers: the model has diverged, or its checkpoint is damaged");
      const Tensor shares = at::softmax(scores, 1).contiguous();
      const double* row = shares.const_data_ptr<double>();
      for (const std::string& name : read.names) {
        take({.image = name, .probabilities = std::vector<double>(row, row + classes())});
        row += classes();
      }
    }
    if (progress) progress(done, images.count());
  }
}

std::string ImagePredictor::label(int64_t index) const { return class_name(model_->options(), index); }

}  // namespace headshare
