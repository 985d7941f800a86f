#include "headshare/models/image_tensors.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {

ImageTensors image_tensors(ImageBatch batch, const VisionOptions& model, c10::Device device) {
  const auto rows = static_cast<int64_t>(batch.labels.size());
  const std::vector<int64_t> sizes = {rows, model.channels, model.image_size, model.image_size};
  const int64_t numbers = rows * model.channels * model.image_size * model.image_size;
  HS_CHECK(static_cast<int64_t>(batch.pixels.size()) == numbers, "a batch has ", batch.pixels.size(), " numbers, and ",
           rows, " images of ", model.channels, " channels and ", model.image_size, " x ", model.image_size,
           " pixels have ", numbers, "; read the images at the model's size");
  // The tensor owns the numbers: large images are not held twice.
  auto owned = std::make_shared<std::vector<float>>(std::move(batch.pixels));
  const Tensor pixels = at::from_blob(
      owned->data(), sizes, [owned](void*) {}, at::kFloat);
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
