#include "headshare/models/encoder_decoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/options/ignored_target.h"
#include "headshare/models/position_limit.h"
#include "headshare/models/transformer.h"
#include "headshare/ops/cross_entropy.h"
#include "headshare/ops/linear.h"

namespace headshare {
namespace {

// Sums over targets the logit of the target minus the mean logit of the vocabulary. Smoothing adds this to the cross
// entropy, for (1 - s) (L - t) + s (L - m) = (L - t) + s (t - m), with L the log of the sum of exponentials. The mean
// logit of a row is its product with the mean row of the embedding, so that no logits are needed.
Tensor above_mean(const Tensor& hidden, const Tensor& embedding, const Tensor& bias, const Tensor& targets) {
  const Tensor rows = at::embedding(embedding, targets);  // [N, E]
  Tensor sum = (hidden * rows).sum() - hidden.sum(0).dot(embedding.mean(0));
  if (bias.defined()) sum = sum + bias.index_select(0, targets).sum() - bias.mean() * targets.size(0);
  return sum;
}

}  // namespace

Tensor sinusoid_table(const EncoderDecoderOptions& o) {
  const Tensor table = sinusoids(o.context, o.attention.d_model);
  if (o.sinusoid_order == SinusoidOrder::kInterleaved) return table;
  const Tensor pairs = table.view({o.context, o.attention.d_model / 2, 2});
  return at::cat({pairs.select(2, 0), pairs.select(2, 1)}, 1);
}

int64_t TranslationState::allocated_bytes() const {
  int64_t total = 0;
  for (const auto* caches : {&own, &cross}) {
    for (const KvCache& cache : *caches) total += cache.allocated_bytes();
  }
  return total;
}

EncoderDecoderImpl::EncoderDecoderImpl(EncoderDecoderOptions resolved)
    : options_(std::move(resolved)), clock_(std::make_shared<DropoutClock>()) {
  HS_CHECK(options_.sites, "the options of an encoder-decoder must be resolved before it is made");
  const EncoderDecoderOptions& o = options_;
  const int64_t E = o.attention.d_model;
  // Embeddings that are scaled by sqrt(E) start with a variance of 1 after scaling; others start as all other weights
  // do.
  const Init rows = Init::normal(o.scale_embeddings ? 1 / std::sqrt(static_cast<double>(E)) : o.init_deviation);
  target_embedding_ = declare("token_embedding", {o.vocabulary, E}, rows);
  source_embedding_ =
      o.share_embeddings ? target_embedding_ : declare("source_embedding", {o.source_vocabulary, E}, rows);
  if (o.positions == PositionKind::kLearned) {
    const Init start = Init::normal(o.init_deviation);
    source_positions_ = declare("source_position_embedding", {o.context, E}, start);
    target_positions_ = declare("position_embedding", {o.context, E}, start);
  } else if (o.positions == PositionKind::kSinusoidal && !device().is_meta()) {
    source_positions_ = target_positions_ = register_buffer("sinusoids", sinusoid_table(o));
  }
  source_site_ = register_module("source_dropout", std::make_shared<Layer>());
  target_site_ = register_module("target_dropout", std::make_shared<Layer>());
  if (o.embedding_norm) {
    source_norm_ = register_module("source_embedding_norm", block_norm(o));
    target_norm_ = register_module("embedding_norm", block_norm(o));
  }
  encoder_ = register_module("encoder", BlockStack(encoder_side(o), clock_));
  decoder_ = register_module("decoder", BlockStack(decoder_side(o), clock_, o.sites->cross));
  if (o.norms == NormPlacement::kBefore) {
    encoder_norm_ = register_module("encoder_norm", block_norm(o));
    decoder_norm_ = register_module("decoder_norm", block_norm(o));
  }
  output_embedding_ = o.tie_embeddings ? target_embedding_ : declare("output_embedding", {o.vocabulary, E}, rows);
  if (o.output_bias) output_bias_ = declare("output_bias", {o.vocabulary}, Init::constant(0), Decay::kNo);
  attach(*this, clock_);
}

void EncoderDecoderImpl::set_recompute(bool on) {
  encoder_->set_recompute(on);
  decoder_->set_recompute(on);
}

void EncoderDecoderImpl::check_ids(const Tensor& ids, int64_t first) const {
  HS_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong, "token ids must be int64 [batch, length]");
  HS_CHECK(!has_position_limit(options_.positions) || first + ids.size(1) <= options_.context, "the sequence of ",
           first + ids.size(1), " tokens is longer than the model's context of ", options_.context);
}

Tensor EncoderDecoderImpl::embed(const Tensor& ids, const Tensor& table, const Norm& norm, int64_t first,
                                 const Layer& site) const {
  check_ids(ids, first);
  Tensor x = at::embedding(table, ids);
  if (options_.scale_embeddings) x = x * std::sqrt(static_cast<double>(options_.attention.d_model));
  const Tensor& positions = &site == source_site_.get() ? source_positions_ : target_positions_;
  if (positions.defined()) x = x + positions.slice(0, first, first + ids.size(1));
  if (norm != nullptr) x = norm->forward(x);
  return dropout(x, options_.dropout, site);
}

EncodedSource EncoderDecoderImpl::encode(const PaddedIds& source) const {
  HS_CHECK(!source.visible.defined() ||
               (source.visible.sizes() == source.ids.sizes() && source.visible.scalar_type() == at::kBool),
           "a truth value is wanted for each of the ids ", source.ids.sizes(), ", not ", source.visible.scalar_type(),
           " ", source.visible.sizes());
  Tensor x = embed(source.ids, source_embedding_, source_norm_, /*first=*/0, *source_site_);
  x = encoder_->forward(std::move(x), {.visible_keys = source.visible}, /*caches=*/nullptr);
  return {.memory = encoder_norm_ == nullptr ? x : encoder_norm_->forward(x), .visible = source.visible};
}

Tensor EncoderDecoderImpl::hidden(const Tensor& ids, const EncodedSource& source, TranslationState* state) const {
  const int64_t first = state == nullptr ? 0 : state->length();
  Tensor x = embed(ids, target_embedding_, target_norm_, first, *target_site_);
  const CrossMemory cross{
      .memory = source.memory, .visible_keys = source.visible, .caches = state == nullptr ? nullptr : &state->cross};
  x = decoder_->forward(std::move(x), {.causal = true}, state == nullptr ? nullptr : &state->own, &cross);
  return decoder_norm_ == nullptr ? x : decoder_norm_->forward(x);
}

Tensor EncoderDecoderImpl::logits(const Tensor& hidden) const {
  return linear_map(hidden, output_embedding_, output_bias_);
}

SummedLoss EncoderDecoderImpl::loss(const PaddedIds& source, const Tensor& ids, const Tensor& targets,
                                    double smoothing) const {
  const Tensor flat = targets.flatten();
  const Tensor places = (flat != kIgnoredTarget).nonzero().squeeze(1);
  const Tensor rows = hidden(ids, encode(source)).flatten(0, 1).index_select(0, places);
  const Tensor asked = flat.index_select(0, places);
  const Tensor sum = cross_entropy_sum(rows, output_embedding_, asked, kIgnoredTarget, output_bias_);
  SummedLoss loss{.sum = sum, .tokens = places.size(0), .plain = sum.detach()};
  if (smoothing > 0) loss.sum = sum + above_mean(rows, output_embedding_, output_bias_, asked) * smoothing;
  return loss;
}

Tensor EncoderDecoderImpl::token_losses(const PaddedIds& source, const Tensor& ids, const Tensor& targets) const {
  const at::NoGradGuard no_grad;
  const Tensor rows = hidden(ids, encode(source)).flatten(0, 1);
  return cross_entropy_rows(rows, output_embedding_, targets.flatten(), kIgnoredTarget, output_bias_)
      .view(targets.sizes());
}

TranslationState EncoderDecoderImpl::new_state(int64_t capacity) const {
  TranslationState state;
  for (size_t i = 0; i < decoder_->groups(); ++i) state.own.emplace_back(capacity);
  for (size_t i = 0; i < decoder_->depth(); ++i) {
    state.cross.emplace_back(/*capacity=*/0);  // takes what the first call stores
  }
  return state;
}

}  // namespace headshare
