// A patch embedding makes tokens of an image: it cuts the image into square patches and maps each to a vector.
#pragma once

#include "headshare/ops/linear.h"

namespace headshare {

// Cuts pixels [B, C, rows P, columns P] into patches of P x P, from the top left row by row: [B, rows columns, C P P].
// A patch holds its first channel before the second, and of each channel row after row, as the weights of a convolution
// lie.
Tensor patches_of(const Tensor& pixels, int64_t patch_size);

// Computes W patch + b for each patch, W: [E, C P P], b: [E]. This is a convolution whose step is as wide as its window
// (Dosovitskiy et al., 2021, section 3.1).
class PatchEmbeddingImpl : public Layer {
 public:
  PatchEmbeddingImpl(int64_t channels, int64_t patch_size, int64_t width, Init init);

  // Maps pixels [B, C, rows P, columns P] to tokens [B, rows columns, E].
  Tensor forward(const Tensor& pixels) const;

  c10::Device device() const { return projection_->weight.device(); }

 private:
  int64_t patch_size_;
  Linear projection_;
};
TORCH_MODULE(PatchEmbedding);

}  // namespace headshare
