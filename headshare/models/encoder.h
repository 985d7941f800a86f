// In the encoder every token sees every other. It has token, position and segment embeddings under a norm, blocks, and
// where wanted a pooler, a masked-LM head and the head of a task. With scheme `mha` and its default options it is BERT.
#pragma once

#include "headshare/models/heads/masked_head.h"
#include "headshare/models/heads/task_head.h"
#include "headshare/models/heads/three_way_head.h"
#include "headshare/models/transformer.h"

namespace headshare {

// An EncoderInput has rows of equal length; shorter texts are padded with any token on their right.
struct EncoderInput {
  Tensor ids;                    // int64 [B, T]
  Tensor visible = {};           // bool [B, T], false for padding; undefined: no padding
  Tensor segments = {};          // int64 [B, T], 0 .. segments - 1; undefined: all 0
  Tensor loose_signatures = {};  // signatures of ids below 0, see TokenIds
};

class EncoderImpl : public TransformerImpl {
 public:
  // Parameters are uninitialised: call initialise() or load a checkpoint. `options` must be resolved.
  explicit EncoderImpl(EncoderOptions resolved);

  // Returns hidden states [B, T, E]; those of padding mean nothing.
  Tensor hidden(const EncoderInput& input) const;

  // Returns the hidden states of some positions only, `places` int64 [N] among the B T (row * T + position): -> [N, E],
  // with less work.
  Tensor hidden_at(const EncoderInput& input, const Tensor& places) const;

  // Applies the pooler, W h + b and its activation, to each row's first token: [B, E]. Throws Error without a pooler.
  Tensor pooled(const EncoderInput& input) const;

  // These functions return the answers of the task head; each throws Error where the head is of another kind.
  Tensor text_scores(const EncoderInput& input) const;                       // [B, C]
  Tensor word_scores(const EncoderInput& input, const Tensor& words) const;  // [B, C]; words [B, 2, T]: weights that
                                                                             // form the means of two groups
  Tensor token_scores(const EncoderInput& input) const;                      // [B, T, C]

  // These functions do the same from hidden states [B, T, E].
  Tensor text_scores_of(const Tensor& hidden) const;
  Tensor word_scores_of(const Tensor& hidden, const Tensor& words) const;
  Tensor token_scores_of(const Tensor& hidden) const;

  // Returns logits for the token of a position: [.., E] -> [.., V]. Throws Error without a masked-LM head, as the
  // functions below do.
  Tensor logits(const Tensor& hidden) const;

  // Sums -log p(targets | input), targets int64 [B, T], kIgnoredTarget where nothing is asked. Only positions with a
  // target pass through the head.
  SummedLoss loss(const EncoderInput& input, const Tensor& targets) const;

  // Returns what a student learns from this model about the tokens that have a target, in evaluation mode and without
  // gradients.
  TeacherOutput teacher_output(const EncoderInput& input, const Tensor& targets) const;

  // Returns the loss of a student that learns from what a teacher gave about the same tokens. Throws Error where it
  // does not fit.
  SummedLoss loss(const EncoderInput& input, const Tensor& targets, const TeacherOutput& taught,
                  const DistillationWeights& how) const;

  // Returns the logits of ThreeWay's classes, [N, 3], at the positions `places` int64 [N] among the B T. Throws Error
  // without a three-way head.
  Tensor three_way_scores(const EncoderInput& input, const Tensor& places) const;

  // Returns -log p of every target, [B, T], 0 where ignored; without gradients.
  Tensor token_losses(const EncoderInput& input, const Tensor& targets) const;

  const EncoderOptions& options() const { return options_; }

 private:
  Tensor embed_all(const EncoderInput& input) const;
  Tensor embedded(const EncoderInput& input) const;
  Tensor normed(const Tensor& last) const;
  Tensor pool(const Tensor& first_tokens) const;  // [B, E] -> [B, E]
  const MaskedHead& masked_head() const;
  const TaskHead& task_head(TaskHeadKind kind) const;

  EncoderOptions options_;
  Tensor segment_embedding_;  // [segments, W] or undefined
  Norm embedding_norm_;
  Norm norm_;  // over the last block, where norms stand before
  Linear pooler_{nullptr};
  MaskedHead masked_head_{nullptr};
  ThreeWayHead three_way_head_{nullptr};
  TaskHead task_head_{nullptr};
};
TORCH_MODULE(Encoder);

}  // namespace headshare
