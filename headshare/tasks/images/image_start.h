// Training starts from the weights of a vision transformer that learned other images.
#pragma once

#include "headshare/models/checkpoint.h"
#include "headshare/models/vision_options.h"

namespace headshare {

// Changes the weights of `start` so that the model `made` computes the same of an image's bytes, although it scales
// pixels by the mean and deviation of its own training images: of the patch embedding, W (x - m) / s + b, a channel's
// maps and the bias follow the scale. Throws Error where the two models tell other classes apart.
void fit_image_start(const VisionOptions& start, const VisionOptions& made, NamedTensors* tensors);

}  // namespace headshare
