#include "headshare/models/vision.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/base/error.h"
#include "headshare/models/transformer.h"

namespace headshare {

Tensor interpolated_positions(const Tensor& table, int64_t leading, int64_t rows, int64_t columns) {
  const int64_t patches = table.size(0) - leading;
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  HS_CHECK(side * side == patches, "positions of ", patches, " patches are no square, and cannot be interpolated");
  if (rows == side && columns == side) return table;
  const int64_t E = table.size(1);
  const Tensor grid = table.narrow(0, leading, patches).view({1, side, side, E}).permute({0, 3, 1, 2});
  const Tensor found = at::upsample_bicubic2d(grid, {rows, columns}, /*align_corners=*/false);
  return at::cat({table.narrow(0, 0, leading), found.permute({0, 2, 3, 1}).reshape({rows * columns, E})}, 0);
}

VisionTransformerImpl::VisionTransformerImpl(VisionOptions resolved)
    : options_(std::move(resolved)),
      clock_(std::make_shared<DropoutClock>()),
      patch_embedding_(register_module(
          "patch_embedding", PatchEmbedding(options_.channels, options_.patch_size, options_.attention.d_model,
                                            Init::normal(options_.init_deviation)))) {
  const VisionOptions& o = options_;
  const int64_t E = o.attention.d_model;
  const Init start = Init::normal(o.init_deviation);
  const bool with_token = o.distillation_token != DistillationToken::kNone;
  if (o.class_token) class_token_ = declare("class_token", {E}, start, Decay::kNo);
  if (with_token) distillation_token_ = declare("distillation_token", {E}, start, Decay::kNo);
  if (o.positions == PositionKind::kLearned) {
    position_embedding_ = declare("position_embedding", {o.context, E}, start, Decay::kNo);
  } else if (o.positions == PositionKind::kSinusoidal && !device().is_meta()) {
    position_embedding_ = register_buffer("sinusoids", sinusoids(o.context, E));
  }
  blocks_ = register_module("blocks", BlockStack(o, clock_));
  if (o.norms == NormPlacement::kBefore) norm_ = register_module("norm", block_norm(o));
  if (o.classes > 0) head_ = register_module("head", Linear(E, o.classes, Bias::kYes, start));
  if (o.classes > 0 && o.distillation_token == DistillationToken::kWithHead) {
    distillation_head_ = register_module("distillation_head", Linear(E, o.classes, Bias::kYes, start));
  }
  attach(*this, clock_);
}

void VisionTransformerImpl::check_pixels(const Tensor& pixels) const {
  const VisionOptions& o = options_;
  HS_CHECK(pixels.dim() == 4 && pixels.is_floating_point(), "pixels must be numbers [images, channels, rows, columns]",
           " and not ", pixels.scalar_type(), " ", pixels.sizes());
  HS_CHECK(pixels.size(1) == o.channels, "the images have ", pixels.size(1), " channels, and the model reads ",
           o.channels, "; read them as ", o.channels == 1 ? "grey" : "colour", " images");
  const int64_t P = o.patch_size, rows = pixels.size(2), columns = pixels.size(3);
  HS_CHECK(rows >= P && columns >= P && rows % P == 0 && columns % P == 0, "images of ", rows, " x ", columns,
           " pixels are not filled by patches of ", P, " x ", P, "; resize them to ", o.image_size, " x ",
           o.image_size);
}

Tensor VisionTransformerImpl::positions(int64_t rows, int64_t columns) const {
  return interpolated_positions(position_embedding_, leading_tokens(options_), rows, columns);
}

Tensor VisionTransformerImpl::embedded(const Tensor& pixels) const {
  check_pixels(pixels);
  const int64_t B = pixels.size(0), P = options_.patch_size;
  const Tensor patches = patch_embedding_->forward(pixels);
  std::vector<Tensor> tokens;
  for (const Tensor& one : {class_token_, distillation_token_}) {
    if (one.defined()) tokens.push_back(one.expand({B, 1, one.size(0)}).to(patches.scalar_type()));
  }
  tokens.push_back(patches);
  Tensor x = at::cat(tokens, 1);
  if (position_embedding_.defined()) x = x + positions(pixels.size(2) / P, pixels.size(3) / P);
  return dropout(x, options_.dropout, *this);
}

Tensor VisionTransformerImpl::normed(const Tensor& last) const {
  return norm_ == nullptr ? last : norm_->forward(last);
}

Tensor VisionTransformerImpl::hidden(const Tensor& pixels) const {
  return normed(blocks_->forward(embedded(pixels), /*mask=*/{}, /*caches=*/nullptr));
}

// Returns the hidden states of the tokens before the patches alone, [B, leading, E], with less work.
Tensor VisionTransformerImpl::leading_hidden(const Tensor& pixels) const {
  const Tensor x = embedded(pixels);
  const int64_t B = x.size(0), T = x.size(1), leading = leading_tokens(options_);
  const auto like = at::TensorOptions(at::kLong).device(x.device());
  const Tensor places = (at::arange(B, like).unsqueeze(1) * T + at::arange(leading, like)).flatten();
  return normed(blocks_->forward_at(places, x, /*mask=*/{})).unflatten(0, {B, leading});
}

ClassScores VisionTransformerImpl::head_scores(const Tensor& pixels) const {
  HS_CHECK(!head_.is_empty(), "this vision transformer has no head that tells classes; train one with labelled images");
  if (options_.pooling == ImagePooling::kMean) {
    const Tensor all = hidden(pixels);
    const int64_t leading = leading_tokens(options_);
    return {.classes = head_->forward(all.narrow(1, leading, all.size(1) - leading).mean(1))};
  }
  const Tensor tokens = leading_hidden(pixels);
  ClassScores found{.classes = head_->forward(tokens.select(1, 0))};
  if (!distillation_head_.is_empty()) found.distillation = distillation_head_->forward(tokens.select(1, 1));
  return found;
}

Tensor VisionTransformerImpl::scores(const Tensor& pixels) const {
  const ClassScores found = head_scores(pixels);
  return found.distillation.defined() ? (found.classes + found.distillation) / 2 : found.classes;
}

}  // namespace headshare
