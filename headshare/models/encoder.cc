#include "headshare/models/encoder.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/taught_loss.h"

namespace headshare {

EncoderImpl::EncoderImpl(EncoderOptions resolved)
    : TransformerImpl(resolved, resolved.embedding),
      options_(std::move(resolved)),
      embedding_norm_(register_module("embedding_norm", embedding_norm(options_))) {
  const int64_t E = options_.attention.d_model;
  const Init start = Init::normal(options_.init_deviation);
  if (options_.segments > 0) {
    segment_embedding_ = declare("segment_embedding", {options_.segments, embedding_width(options_)}, start);
  }
  if (options_.norms != NormPlacement::kAfter) norm_ = register_module("norm", block_norm(options_));
  if (options_.pooler) pooler_ = register_module("pooler", Linear(E, E, Bias::kYes, start));
  if (options_.task_head.kind != TaskHeadKind::kNone) task_head_ = register_module("task_head", TaskHead(options_));
  if (options_.masked_head) masked_head_ = register_module("masked_head", MaskedHead(options_, token_embedding()));
  if (options_.three_way_head) three_way_head_ = register_module("three_way_head", ThreeWayHead(options_));
  attach(*this, shared_clock());
}

Tensor EncoderImpl::embed_all(const EncoderInput& input) const {
  const Tensor x = embed({.ids = input.ids, .loose_signatures = input.loose_signatures}, /*first=*/0);
  if (input.segments.defined()) {
    HS_CHECK(segment_embedding_.defined(), "this encoder does not tell segments apart (its --segments is 0)");
    HS_CHECK(input.segments.sizes() == input.ids.sizes() && input.segments.scalar_type() == at::kLong,
             "a segment, int64, is wanted for each of the ids ", input.ids.sizes(), ", not ",
             input.segments.scalar_type(), " ", input.segments.sizes());
    return x + at::embedding(segment_embedding_, input.segments);
  }
  return segment_embedding_.defined() ? x + segment_embedding_[0] : x;
}

Tensor EncoderImpl::embedded(const EncoderInput& input) const {
  HS_CHECK(!input.visible.defined() ||
               (input.visible.sizes() == input.ids.sizes() && input.visible.scalar_type() == at::kBool),
           "a truth value is wanted for each of the ids ", input.ids.sizes(), ", not ", input.visible.scalar_type(),
           " ", input.visible.sizes());
  return dropout(embedding_norm_->forward(embed_all(input)), options_.dropout, *this);
}

Tensor EncoderImpl::normed(const Tensor& last) const { return norm_ == nullptr ? last : norm_->forward(last); }

Tensor EncoderImpl::hidden(const EncoderInput& input) const {
  return normed(through_blocks(embedded(input), {.visible_keys = input.visible}, /*caches=*/nullptr));
}

Tensor EncoderImpl::hidden_at(const EncoderInput& input, const Tensor& places) const {
  return normed(through_blocks_at(places, embedded(input), {.visible_keys = input.visible}));
}

Tensor EncoderImpl::pool(const Tensor& first_tokens) const {
  HS_CHECK(!pooler_.is_empty(), "this encoder has no pooler");
  const Tensor x = pooler_->forward(first_tokens);
  return options_.pooler_activation == PoolerActivation::kTanh ? x.tanh() : x.relu();
}

Tensor EncoderImpl::pooled(const EncoderInput& input) const {
  const int64_t length = input.ids.size(1);
  return pool(hidden_at(input, at::arange(input.ids.size(0), input.ids.options()) * length));
}

const TaskHead& EncoderImpl::task_head(TaskHeadKind kind) const {
  HS_CHECK(options_.task_head.kind == kind,
           "this encoder has no head for this task; fine-tune it with `headshare finetune`");
  return task_head_;
}

Tensor EncoderImpl::text_scores(const EncoderInput& input) const {
  return task_head(TaskHeadKind::kText)->forward(pooled(input));
}

Tensor EncoderImpl::text_scores_of(const Tensor& hidden) const {
  return task_head(TaskHeadKind::kText)->forward(pool(hidden.select(1, 0)));
}

Tensor EncoderImpl::word_scores(const EncoderInput& input, const Tensor& words) const {
  return word_scores_of(hidden(input), words);
}

Tensor EncoderImpl::word_scores_of(const Tensor& hidden, const Tensor& words) const {
  const Tensor means = at::bmm(words.to(hidden.scalar_type()), hidden).flatten(1);  // [B, 2 E]
  return task_head(TaskHeadKind::kWords)->forward(at::cat({pool(hidden.select(1, 0)), means}, 1));
}

Tensor EncoderImpl::token_scores(const EncoderInput& input) const { return token_scores_of(hidden(input)); }

Tensor EncoderImpl::token_scores_of(const Tensor& hidden) const {
  return task_head(TaskHeadKind::kToken)->forward(hidden);
}

const MaskedHead& EncoderImpl::masked_head() const {
  HS_CHECK(!is_hashed(options_.embedding),
           "this encoder hashes words and has no vocabulary, so it cannot say which word stands in a place; ",
           options_.three_way_head ? "`headshare evaluate` scores how well it tells replaced words"
                                   : "`headshare predict` gives the answers that it was fine-tuned for");
  HS_CHECK(!masked_head_.is_empty(),
           "this encoder has no masked-LM head, which predicts masked tokens; train one with "
           "`headshare train --task mlm`, or convert a BertForMaskedLM instead of a BertModel");
  return masked_head_;
}

Tensor EncoderImpl::logits(const Tensor& hidden) const { return masked_head()->logits(hidden); }

SummedLoss EncoderImpl::loss(const EncoderInput& input, const Tensor& targets) const {
  const Tensor flat = targets.flatten();
  const Tensor places = (flat != kIgnoredTarget).nonzero().squeeze(1);
  const MaskedHead& head = masked_head();
  return {head->loss_sum(hidden_at(input, places), flat.index_select(0, places)), places.size(0)};
}

TeacherOutput EncoderImpl::teacher_output(const EncoderInput& input, const Tensor& targets) const {
  HS_CHECK(!is_training(), "a teacher must be in evaluation mode: it has no dropout");
  const at::NoGradGuard no_grad;
  const Tensor places = (targets.flatten() != kIgnoredTarget).nonzero().squeeze(1);
  const Tensor last = hidden_at(input, places);
  const MaskedHead& head = masked_head();
  return {.hidden = last, .scores = head->teacher_rows(last)};
}

SummedLoss EncoderImpl::loss(const EncoderInput& input, const Tensor& targets, const TeacherOutput& taught,
                             const DistillationWeights& how) const {
  const Tensor flat = targets.flatten();
  const Tensor places = (flat != kIgnoredTarget).nonzero().squeeze(1);
  const MaskedHead& head = masked_head();
  const Tensor last = hidden_at(input, places);
  const DistilledLoss found = head->loss_sum(last, flat.index_select(0, places), taught.scores, how.scores);
  return taught_loss(found, last, places.size(0), taught, how);
}

Tensor EncoderImpl::three_way_scores(const EncoderInput& input, const Tensor& places) const {
  HS_CHECK(!three_way_head_.is_empty(),
           "this encoder has no head that tells original, shuffled and random tokens apart; train one with `headshare "
           "train --task three-way`");
  return three_way_head_->forward(hidden_at(input, places));
}

Tensor EncoderImpl::token_losses(const EncoderInput& input, const Tensor& targets) const {
  const at::NoGradGuard no_grad;
  const Tensor flat = targets.flatten();
  const Tensor places = (flat != kIgnoredTarget).nonzero().squeeze(1);
  const MaskedHead& head = masked_head();
  const Tensor found = head->losses(hidden_at(input, places), flat.index_select(0, places));
  return at::zeros({flat.size(0)}, found.options()).index_copy_(0, places, found).view(targets.sizes());
}

}  // namespace headshare
