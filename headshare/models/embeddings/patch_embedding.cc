#include "headshare/models/embeddings/patch_embedding.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/made_again.h"

namespace headshare {

Tensor patches_of(const Tensor& pixels, int64_t P) {
  HS_DCHECK(pixels.dim() == 4 && pixels.size(2) % P == 0 && pixels.size(3) % P == 0);
  const int64_t B = pixels.size(0), C = pixels.size(1), rows = pixels.size(2) / P, columns = pixels.size(3) / P;
  return pixels.reshape({B, C, rows, P, columns, P})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({B, rows * columns, C * P * P});
}

PatchEmbeddingImpl::PatchEmbeddingImpl(int64_t channels, int64_t patch_size, int64_t width, Init init)
    : patch_size_(patch_size),
      projection_(register_module("projection", Linear(channels * patch_size * patch_size, width, Bias::kYes, init))) {}

Tensor PatchEmbeddingImpl::forward(const Tensor& pixels) const {
  const Tensor patches = patches_of(pixels, patch_size_);
  return made_again(
      patches, {pixels}, [pixels, P = patch_size_] { return patches_of(pixels, P); }, projection_->forward(patches));
}

}  // namespace headshare
