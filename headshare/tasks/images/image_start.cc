#include "headshare/tasks/images/image_start.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/image_tensors.h"

namespace headshare {
namespace {

void check_same_classes(const VisionOptions& start, const VisionOptions& made) {
  HS_CHECK(start.classes == made.classes, "the model to start from tells ", start.classes,
           " classes apart, and the images have ", made.classes, "; give images of the model's classes");
  const std::vector<std::string>&known = start.images.labels, &found = made.images.labels;
  if (known.empty()) return;
  for (size_t i = 0; i < known.size(); ++i) {
    HS_CHECK(known[i] == found.at(i), "class ", i, " of the images is ", found[i],
             ", and that of the model to start from is ", known[i], "; give images of the model's classes");
  }
}

}  // namespace

void fit_image_start(const VisionOptions& start, const VisionOptions& made, NamedTensors* tensors) {
  check_same_classes(start, made);
  const PixelScale from = scale_of(start), to = scale_of(made);
  if (from.mean == to.mean && from.deviation == to.deviation) return;
  const at::NoGradGuard no_grad;
  Tensor& weight = tensors->at("patch_embedding.projection.weight");  // [E, C P P]
  Tensor& bias = tensors->at("patch_embedding.projection.bias");      // [E]
  const auto row = [](const std::vector<double>& numbers) { return at::tensor(numbers, at::kDouble); };
  const Tensor factor = row(to.deviation) / row(from.deviation);                          // [C]
  const Tensor offset = (row(to.mean) - row(from.mean)) / row(from.deviation);            // [C]
  const Tensor maps = weight.to(at::kDouble).view({weight.size(0), start.channels, -1});  // [E, C, P P]
  bias = (bias.to(at::kDouble) + maps.sum(2).matmul(offset)).to(bias.scalar_type());
  weight = (maps * factor.view({1, -1, 1})).view_as(weight).to(weight.scalar_type());
}

}  // namespace headshare
