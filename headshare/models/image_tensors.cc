#include "headshare/models/image_tensors.h"

#include <ATen/ATen.h>

#include <cstring>

namespace headshare {

ImageTensors image_tensors(const ImageBatch& batch, const VisionOptions& model, c10::Device device) {
  const auto rows = static_cast<int64_t>(batch.labels.size());
  const Tensor pixels = at::empty({rows, model.channels, model.image_size, model.image_size}, at::kFloat);
  std::memcpy(pixels.mutable_data_ptr<float>(), batch.pixels.data(), batch.pixels.size() * sizeof(float));
  ImageTensors made{
      .pixels = pixels.to(device), .labels = at::tensor(batch.labels, at::kLong).to(device), .share = batch.share};
  if (!batch.mixed_labels.empty()) made.mixed_labels = at::tensor(batch.mixed_labels, at::kLong).to(device);
  return made;
}

PixelScale scale_of(const VisionOptions& model) {
  const auto channels = static_cast<size_t>(model.channels);
  PixelScale scale{.mean = model.images.mean, .deviation = model.images.deviation};
  if (scale.mean.empty()) scale.mean.assign(channels, 0);
  if (scale.deviation.empty()) scale.deviation.assign(channels, 1);
  return scale;
}

std::string class_name(const VisionOptions& model, int64_t index) {
  const std::vector<std::string>& labels = model.images.labels;
  return labels.empty() ? std::to_string(index) : labels.at(static_cast<size_t>(index));
}

}  // namespace headshare
