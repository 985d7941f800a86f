#include "headshare/models/transformer.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/recompute.h"

namespace headshare {

Tensor sinusoids(int64_t length, int64_t width) {
  const Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const Tensor frequency = at::pow(10000.0, at::arange(0, width, 2, at::kDouble) * (-1.0 / static_cast<double>(width)));
  const Tensor angle = position * frequency;  // [length, E / 2]
  return at::stack({angle.sin(), angle.cos()}, 2).reshape({length, width}).to(at::kFloat);
}

TransformerImpl::TransformerImpl(const TransformerOptions& o, NormPlacement norms)
    : positions_(o.positions), context_(o.context), clock_(std::make_shared<DropoutClock>()) {
  const int64_t E = o.attention.d_model;
  const Init start = Init::normal(o.init_deviation);
  embedding_ = make_token_embedding(
      o, [this](const std::string& name, at::IntArrayRef sizes, Init init) { return declare(name, sizes, init); });
  if (positions_ == PositionKind::kLearned) {
    position_embedding_ = declare("position_embedding", {context_, E}, start);
  } else if (positions_ == PositionKind::kSinusoidal && !device().is_meta()) {
    position_embedding_ = register_buffer("sinusoids", sinusoids(context_, E));
  }
  const auto blocks = register_module("blocks", std::make_shared<Layer>());
  for (int64_t i = 0; i < o.layers; ++i) {
    TransformerOptions one = o;
    one.attention = layer_attention(o, i);
    blocks_.push_back(blocks->register_module(std::to_string(i), Block(one, norms)));
  }
}

void TransformerImpl::check_ids(const Tensor& ids, int64_t first) const {
  HS_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong, "token ids must be int64 [batch, length]");
  const bool bounded = positions_ == PositionKind::kLearned || positions_ == PositionKind::kSinusoidal;
  HS_CHECK(!bounded || first + ids.size(1) <= context_, "the sequence of ", first + ids.size(1),
           " tokens is longer than the model's context of ", context_);
}

Tensor TransformerImpl::embed(const Tensor& ids, int64_t first, LookupGradient gradient) const {
  check_ids(ids, first);
  const Tensor x = embedding_->lookup(ids, gradient);
  return position_embedding_.defined() ? x + position_embedding_.slice(0, first, first + ids.size(1)) : x;
}

Tensor TransformerImpl::kept_or_recomputed(const std::function<Tensor(const Tensor&)>& piece, const Tensor& x) const {
  return recompute_ && is_training() ? recomputed(piece, x) : piece(x);
}

Tensor TransformerImpl::through_some_blocks(size_t count, Tensor x, const HeadMask& mask,
                                            std::vector<KvCache>* caches) const {
  for (size_t i = 0; i < count; ++i) {
    const Block& block = blocks_[i];
    if (caches != nullptr) {
      x = block->forward(x, mask, &caches->at(i));
    } else {
      x = kept_or_recomputed([block, mask](const Tensor& in) { return block->forward(in, mask, nullptr); }, x);
    }
  }
  return x;
}

Tensor TransformerImpl::through_blocks(Tensor x, const HeadMask& mask, std::vector<KvCache>* caches) const {
  return through_some_blocks(blocks_.size(), std::move(x), mask, caches);
}

Tensor TransformerImpl::through_blocks_at(const Tensor& places, Tensor x, const HeadMask& mask) const {
  x = through_some_blocks(blocks_.size() - 1, std::move(x), mask, /*caches=*/nullptr);
  const Block& last = blocks_.back();
  return kept_or_recomputed([last, places, mask](const Tensor& in) { return last->forward_at(places, in, mask); }, x);
}

}  // namespace headshare
