#include "headshare/models/decoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/base/error.h"
#include "headshare/ops/cross_entropy.h"
#include "headshare/ops/recompute.h"

namespace headshare {
namespace {

Bias bias_of(bool wanted) { return wanted ? Bias::kYes : Bias::kNo; }

Tensor activate(ActivationKind kind, const Tensor& x) {
  switch (kind) {
    case ActivationKind::kGeluTanh:
      return at::gelu(x, "tanh");
    case ActivationKind::kGeluErf:
      return at::gelu(x, "none");
    case ActivationKind::kRelu:
      return at::relu(x);
  }
  return {};
}

}  // namespace

FeedForwardImpl::FeedForwardImpl(const DecoderOptions& o)
    : activation_(o.activation),
      expand_(register_module("expand", Linear(o.attention.d_model, *o.feed_forward_width, bias_of(o.feed_forward_bias),
                                               Init::normal(o.init_deviation)))),
      contract_(
          register_module("contract", Linear(*o.feed_forward_width, o.attention.d_model, bias_of(o.feed_forward_bias),
                                             Init::normal(o.attention.output_deviation)))) {}

Tensor FeedForwardImpl::forward(const Tensor& x) const {
  return contract_->forward(activate(activation_, expand_->forward(x)));
}

BlockImpl::BlockImpl(const DecoderOptions& o)
    : attention(register_module("attention", Attention(o.attention))),
      dropout_(o.dropout),
      attention_norm_(register_module("attention_norm", LayerNorm(o.attention.d_model, o.norm_epsilon))),
      feed_forward_norm_(register_module("feed_forward_norm", LayerNorm(o.attention.d_model, o.norm_epsilon))),
      feed_forward_(register_module("feed_forward", FeedForward(o))),
      attention_residual_(register_module("attention_residual", std::make_shared<Layer>())),
      feed_forward_residual_(register_module("feed_forward_residual", std::make_shared<Layer>())) {}

Tensor BlockImpl::forward(const Tensor& x, const HeadMask& mask, KvCache* cache) const {
  const Tensor attended = attention->self(attention_norm_->forward(x), mask, cache);
  const Tensor middle = x + dropout(attended, dropout_, *attention_residual_);
  const Tensor changed = feed_forward_->forward(feed_forward_norm_->forward(middle));
  return middle + dropout(changed, dropout_, *feed_forward_residual_);
}

int64_t DecodingState::allocated_bytes() const {
  int64_t total = 0;
  for (const KvCache& cache : caches) total += cache.allocated_bytes();
  return total;
}

Tensor sinusoids(int64_t length, int64_t width) {
  const Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const Tensor frequency = at::pow(10000.0, at::arange(0, width, 2, at::kDouble) * (-1.0 / static_cast<double>(width)));
  const Tensor angle = position * frequency;  // [length, E / 2]
  return at::stack({angle.sin(), angle.cos()}, 2).reshape({length, width}).to(at::kFloat);
}

DecoderImpl::DecoderImpl(DecoderOptions resolved)
    : options_(std::move(resolved)), clock_(std::make_shared<DropoutClock>()) {
  const int64_t E = options_.attention.d_model;
  const Init start = Init::normal(options_.init_deviation);
  token_embedding_ = declare("token_embedding", {options_.vocabulary, E}, start);
  if (options_.positions == PositionKind::kLearned) {
    position_embedding_ = declare("position_embedding", {options_.context, E}, start);
  } else if (options_.positions == PositionKind::kSinusoidal && !token_embedding_.is_meta()) {
    position_embedding_ = register_buffer("sinusoids", sinusoids(options_.context, E));
  }
  const auto blocks = register_module("blocks", std::make_shared<Layer>());
  for (int64_t i = 0; i < options_.layers; ++i) {
    blocks_.push_back(blocks->register_module(std::to_string(i), Block(options_)));
  }
  norm_ = register_module("norm", LayerNorm(E, options_.norm_epsilon));
  output_embedding_ =
      options_.tie_embeddings ? token_embedding_ : declare("output_embedding", {options_.vocabulary, E}, start);
  attach(*this, clock_);
}

void DecoderImpl::check_ids(const Tensor& ids, int64_t first) const {
  HS_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong, "token ids must be int64 [batch, length]");
  const bool bounded = options_.positions == PositionKind::kLearned || options_.positions == PositionKind::kSinusoidal;
  HS_CHECK(!bounded || first + ids.size(1) <= options_.context, "the sequence of ", first + ids.size(1),
           " tokens is longer than the model's context of ", options_.context);
}

Tensor DecoderImpl::embed(const Tensor& ids, int64_t first) const {
  check_ids(ids, first);
  Tensor x = at::embedding(token_embedding_, ids);  // [B, T, E]
  if (position_embedding_.defined()) x = x + position_embedding_.slice(0, first, first + ids.size(1));
  return dropout(x, options_.dropout, *this);
}

Tensor DecoderImpl::hidden(const Tensor& ids, DecodingState* state) const {
  const int64_t first = state == nullptr ? 0 : state->length();
  const HeadMask causal{.causal = true};
  Tensor x = embed(ids, first);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (recompute_ && state == nullptr && is_training()) {
      x = recomputed([block, causal](const Tensor& in) { return block->forward(in, causal, nullptr); }, x);
    } else {
      x = block->forward(x, causal, state == nullptr ? nullptr : &state->caches[i]);
    }
  }
  return norm_->forward(x);
}

Tensor DecoderImpl::logits(const Tensor& hidden) const { return at::linear(hidden, output_embedding_); }

SummedLoss DecoderImpl::loss(const Tensor& ids, const Tensor& targets) const {
  const Tensor flat = targets.flatten();
  const Tensor sum = cross_entropy_sum(hidden(ids).flatten(0, 1), output_embedding_, flat, kIgnoredTarget);
  return {sum, (flat != kIgnoredTarget).sum().item<int64_t>()};
}

Tensor DecoderImpl::token_losses(const Tensor& ids, const Tensor& targets) const {
  return cross_entropy_rows(hidden(ids).flatten(0, 1), output_embedding_, targets.flatten(), kIgnoredTarget)
      .view(targets.sizes());
}

DecodingState DecoderImpl::new_state(int64_t capacity) const {
  DecodingState state;
  for (size_t i = 0; i < blocks_.size(); ++i) state.caches.emplace_back(capacity);
  return state;
}

}  // namespace headshare
