#include "headshare/models/transformer.h"

#include <ATen/ATen.h>

#include <optional>

#include "headshare/base/error.h"
#include "headshare/models/position_limit.h"
#include "headshare/ops/recompute.h"

namespace headshare {

Tensor sinusoids(int64_t length, int64_t width) {
  const Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const Tensor frequency = at::pow(10000.0, at::arange(0, width, 2, at::kDouble) * (-1.0 / static_cast<double>(width)));
  const Tensor angle = position * frequency;  // [length, E / 2]
  return at::stack({angle.sin(), angle.cos()}, 2).reshape({length, width}).to(at::kFloat);
}

TransformerImpl::TransformerImpl(const TransformerOptions& o, NormPlacement norms,
                                 const TokenEmbeddingOptions& embedding)
    : positions_(o.positions),
      context_(o.context),
      clock_(std::make_shared<DropoutClock>()),
      depth_(static_cast<size_t>(o.layers)) {
  const int64_t W = embedding_width(o);
  const Init start = Init::normal(o.init_deviation);
  EmbeddingHost host = {
      .declare = [this](const std::string& name, at::IntArrayRef sizes,
                        Init init) { return declare(name, sizes, init); },
      .dropout = [this, p = o.dropout](const Tensor& x, uint64_t part) { return dropout(x, p, *this, part); }};
  embedding_ = make_token_embedding(embedding, {.vocabulary = o.vocabulary, .width = W, .deviation = o.init_deviation},
                                    std::move(host));
  if (positions_ == PositionKind::kLearned) {
    position_embedding_ = declare("position_embedding", {context_, W}, start);
  } else if (positions_ == PositionKind::kSinusoidal && !device().is_meta()) {
    position_embedding_ = register_buffer("sinusoids", sinusoids(context_, W));
  }
  if (o.embedding_width) {
    embedding_projection_ = register_module("embedding_projection", Linear(W, o.attention.d_model, Bias::kYes, start));
  }
  const auto blocks = register_module("blocks", std::make_shared<Layer>());
  for (int64_t i = 0; i < own_layers(o); ++i) {
    TransformerOptions one = o;
    one.attention = layer_attention(o, i);
    blocks_.push_back(blocks->register_module(std::to_string(i), Block(one, norms)));
  }
}

void TransformerImpl::check_ids(const Tensor& ids, int64_t first) const {
  HS_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong, "token ids must be int64 [batch, length]");
  HS_CHECK(!has_position_limit(positions_) || first + ids.size(1) <= context_, "the sequence of ", first + ids.size(1),
           " tokens is longer than the model's context of ", context_);
}

Tensor TransformerImpl::embed(const TokenIds& tokens, int64_t first, LookupGradient gradient) const {
  check_ids(tokens.ids, first);
  const Tensor x = embedding_->lookup(tokens, gradient);
  return position_embedding_.defined() ? x + position_embedding_.slice(0, first, first + tokens.ids.size(1)) : x;
}

Tensor TransformerImpl::kept_or_recomputed(const std::function<Tensor(const Tensor&)>& piece, const Tensor& x) const {
  return recompute_ && is_training() ? recomputed(piece, x) : piece(x);
}

Tensor TransformerImpl::Placed::run(const std::function<Tensor(const Block&)>& piece) const {
  std::optional<UsedAs> masks;
  if (block->is_training() && block->path() != path) masks.emplace(*clock, block->path(), path);
  return piece(block);
}

TransformerImpl::Placed TransformerImpl::at_depth(size_t depth) const {
  return {.block = blocks_[depth * blocks_.size() / depth_], .clock = clock_, .path = join_text("blocks.", depth)};
}

Tensor TransformerImpl::through_some_blocks(size_t count, Tensor x, const HeadMask& mask,
                                            std::vector<KvCache>* caches) const {
  if (!embedding_projection_.is_empty()) x = embedding_projection_->forward(x);
  for (size_t i = 0; i < count; ++i) {
    KvCache* const cache = caches == nullptr ? nullptr : &caches->at(i);
    const auto piece = [placed = at_depth(i), mask, cache](const Tensor& in) {
      return placed.run([&](const Block& block) { return block->forward(in, mask, cache); });
    };
    x = caches == nullptr ? kept_or_recomputed(piece, x) : piece(x);
  }
  return x;
}

Tensor TransformerImpl::through_blocks(Tensor x, const HeadMask& mask, std::vector<KvCache>* caches) const {
  return through_some_blocks(depth_, std::move(x), mask, caches);
}

Tensor TransformerImpl::through_blocks_at(const Tensor& places, Tensor x, const HeadMask& mask) const {
  const size_t last = depth_ - 1;
  x = through_some_blocks(last, std::move(x), mask, /*caches=*/nullptr);
  const auto piece = [placed = at_depth(last), places, mask](const Tensor& in) {
    return placed.run([&](const Block& block) { return block->forward_at(places, in, mask); });
  };
  return kept_or_recomputed(piece, x);
}

}  // namespace headshare
