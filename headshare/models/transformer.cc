#include "headshare/models/transformer.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/position_limit.h"

namespace headshare {

Tensor sinusoids(int64_t length, int64_t width) {
  const Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const Tensor frequency = at::pow(10000.0, at::arange(0, width, 2, at::kDouble) * (-1.0 / static_cast<double>(width)));
  const Tensor angle = position * frequency;  // [length, E / 2]
  return at::stack({angle.sin(), angle.cos()}, 2).reshape({length, width}).to(at::kFloat);
}

TransformerImpl::TransformerImpl(const TransformerOptions& o, const TokenEmbeddingOptions& embedding)
    : positions_(o.positions), context_(o.context), clock_(std::make_shared<DropoutClock>()) {
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
  blocks_ = register_module("blocks", BlockStack(o, clock_));
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

Tensor TransformerImpl::projected(const Tensor& embedded) const {
  return embedding_projection_.is_empty() ? embedded : embedding_projection_->forward(embedded);
}

Tensor TransformerImpl::through_blocks(const Tensor& x, const HeadMask& mask, std::vector<KvCache>* caches) const {
  return blocks_->forward(projected(x), mask, caches);
}

Tensor TransformerImpl::through_blocks_at(const Tensor& places, const Tensor& x, const HeadMask& mask) const {
  return blocks_->forward_at(places, projected(x), mask);
}

}  // namespace headshare
