#include "headshare/models/decoder.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/taught_loss.h"
#include "headshare/ops/cross_entropy.h"

namespace headshare {
namespace {

// Selects the rows of hidden states [B, T, E] that have a target, of targets [B T]: -> [N, E].
Tensor with_target(const Tensor& hidden, const Tensor& targets) {
  const Tensor rows = hidden.flatten(0, 1);
  const Tensor places = (targets != kIgnoredTarget).nonzero().squeeze(1);
  return places.size(0) == rows.size(0) ? rows : rows.index_select(0, places);
}

TransformerOptions with_norms_before(TransformerOptions options) {
  options.norms = NormPlacement::kBefore;
  return options;
}

}  // namespace

int64_t DecodingState::allocated_bytes() const {
  int64_t total = 0;
  for (const KvCache& cache : caches) total += cache.allocated_bytes();
  return total;
}

DecoderImpl::DecoderImpl(DecoderOptions resolved)
    : TransformerImpl(with_norms_before(resolved)),
      options_(std::move(resolved)),
      norm_(register_module("norm", block_norm(options_))),
      output_embedding_(token_embedding()) {
  const Init start = Init::normal(options_.init_deviation);
  const int64_t W = embedding_width(options_);
  if (options_.embedding_width) {
    output_projection_ = register_module("output_projection", Linear(options_.attention.d_model, W, Bias::kNo, start));
  }
  if (!options_.tie_embeddings) output_embedding_ = declare("output_embedding", {options_.vocabulary, W}, start);
  attach(*this, shared_clock());
}

Tensor DecoderImpl::hidden(const Tensor& ids, DecodingState* state) const {
  return above(embed({.ids = ids}, state == nullptr ? 0 : state->length()), state);
}

Tensor DecoderImpl::above(const Tensor& embedded, DecodingState* state) const {
  const Tensor x = dropout(embedded, options_.dropout, *this);
  return norm_->forward(through_blocks(x, {.causal = true}, state == nullptr ? nullptr : &state->caches));
}

Tensor DecoderImpl::scored(const Tensor& hidden) const {
  return output_projection_.is_empty() ? hidden : output_projection_->forward(hidden);
}

Tensor DecoderImpl::logits(const Tensor& hidden) const { return linear_map(scored(hidden), output_embedding_); }

SummedLoss DecoderImpl::loss(const Tensor& ids, const Tensor& targets) const {
  const Tensor flat = targets.flatten();
  const LookupGradient gradient = options_.tie_embeddings ? LookupGradient::kRows : LookupGradient::kWhole;
  const Tensor last = scored(above(embed({.ids = ids}, /*first=*/0, gradient), /*state=*/nullptr));
  const Tensor sum = cross_entropy_sum(last.flatten(0, 1), output_embedding_, flat, kIgnoredTarget);
  return {sum, (flat != kIgnoredTarget).sum().item<int64_t>()};
}

TeacherOutput DecoderImpl::teacher_output(const Tensor& ids, const Tensor& targets) const {
  HS_CHECK(!is_training(), "a teacher must be in evaluation mode: it has no dropout");
  const at::NoGradGuard no_grad;
  const Tensor last = with_target(hidden(ids), targets.flatten());
  return {.hidden = last, .scores = {.hidden = scored(last), .embedding = output_embedding_.detach()}};
}

SummedLoss DecoderImpl::loss(const Tensor& ids, const Tensor& targets, const TeacherOutput& taught,
                             const DistillationWeights& how) const {
  const Tensor flat = targets.flatten();
  const LookupGradient gradient = options_.tie_embeddings ? LookupGradient::kRows : LookupGradient::kWhole;
  const Tensor last = with_target(above(embed({.ids = ids}, /*first=*/0, gradient), /*state=*/nullptr), flat);
  const Tensor asked = flat.masked_select(flat != kIgnoredTarget);
  const DistilledLoss found = distilled_cross_entropy_sum(scored(last), output_embedding_, asked, kIgnoredTarget,
                                                          /*bias=*/{}, taught.scores, how.scores);
  return taught_loss(found, last, asked.size(0), taught, how);
}

Tensor DecoderImpl::token_losses(const Tensor& ids, const Tensor& targets) const {
  return cross_entropy_rows(scored(hidden(ids)).flatten(0, 1), output_embedding_, targets.flatten(), kIgnoredTarget)
      .view(targets.sizes());
}

DecodingState DecoderImpl::new_state(int64_t capacity) const {
  DecodingState state;
  for (size_t i = 0; i < caches(); ++i) state.caches.emplace_back(capacity);
  return state;
}

}  // namespace headshare
