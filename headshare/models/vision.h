// A vision transformer reads an image as a sequence of patches and tells its class. With scheme `mha` and the default
// options it is ViT (Dosovitskiy et al., 2021), with a distillation token DeiT (Touvron et al., 2021).
#pragma once

#include <memory>

#include "headshare/models/blocks/block_stack.h"
#include "headshare/models/embeddings/patch_embedding.h"
#include "headshare/models/vision_options.h"
#include "headshare/ops/linear.h"

namespace headshare {

// Makes positions for an image of other sizes of those for side x side patches: `table` [leading + side side, E] ->
// [leading + rows columns, E]. The `leading` rows are kept, the others are interpolated between rows and columns,
// bicubically and without a filter, as transformers does. timm filters where an image shrinks, and weights neighbours
// otherwise.
Tensor interpolated_positions(const Tensor& table, int64_t leading, int64_t rows, int64_t columns);

// ClassScores are the logits of the heads, [B, classes] each; `distillation` is undefined without its head.
struct ClassScores {
  Tensor classes;
  Tensor distillation = {};
};

class VisionTransformerImpl : public Layer {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit VisionTransformerImpl(VisionOptions resolved);

  // These read pixels [B, C, rows P, columns P], normalised as ImageLabels says. For an image of another size than the
  // model's, positions are interpolated. Throws Error for other channels and for sizes that patches do not fill.
  Tensor hidden(const Tensor& pixels) const;  // [B, T, E]: the class token, the distillation token, the patches

  // Returns the logits [B, classes]: of the head, or the mean of both heads' where the distillation token has one.
  // Throws Error without a head.
  Tensor scores(const Tensor& pixels) const;

  // Returns the logits of each head, which learn from different answers in DeiT's training.
  ClassScores head_scores(const Tensor& pixels) const;

  DropoutClock& clock() const { return *clock_; }
  c10::Device device() const { return patch_embedding_->device(); }
  // Returns the attention of a layer with parameters of its own, 0 .. layers() - 1; where layers share theirs, it runs
  // at depth() / layers() depths.
  Attention attention(size_t layer) const { return blocks_->block(layer)->attention; }
  size_t layers() const { return blocks_->layers(); }
  size_t depth() const { return blocks_->depth(); }

  // With recomputation blocks keep only their inputs and run again in the backward pass.
  void set_recompute(bool on) { blocks_->set_recompute(on); }

  const VisionOptions& options() const { return options_; }

 private:
  void check_pixels(const Tensor& pixels) const;
  Tensor positions(int64_t rows, int64_t columns) const;
  Tensor embedded(const Tensor& pixels) const;
  Tensor normed(const Tensor& last) const;
  Tensor leading_hidden(const Tensor& pixels) const;

  VisionOptions options_;
  std::shared_ptr<DropoutClock> clock_;
  PatchEmbedding patch_embedding_;
  Tensor class_token_, distillation_token_;  // [E], or undefined
  Tensor position_embedding_;                // [T, E], learned or a buffer of sinusoids; undefined without positions
  BlockStack blocks_{nullptr};
  Norm norm_;  // over the last block, where norms stand before
  Linear head_{nullptr}, distillation_head_{nullptr};
};
TORCH_MODULE(VisionTransformer);

}  // namespace headshare
