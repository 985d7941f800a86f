// Batches of images become tensors.
#pragma once

#include "headshare/data/images/image_batcher.h"
#include "headshare/models/vision.h"

namespace headshare {

struct ImageTensors {
  Tensor pixels;             // float32 [B, C, S, S]
  Tensor labels;             // int64 [B]
  Tensor mixed_labels = {};  // int64 [B], or undefined
  double share = 1;          // of `labels`
};

// Takes the batch over. Throws Error where its pixels are not those of images of the model's size.
ImageTensors image_tensors(ImageBatch batch, const VisionOptions& model, c10::Device device);

// Returns how the model's pixels become numbers.
PixelScale scale_of(const VisionOptions& model);

// Returns the name of a class: its number where the model has no names.
std::string class_name(const VisionOptions& model, int64_t index);

}  // namespace headshare
