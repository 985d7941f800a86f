// The masked-LM head predicts masked tokens from an encoder's hidden states (BERT's cls.predictions).
#pragma once

#include "headshare/models/blocks/options.h"
#include "headshare/ops/cross_entropy.h"
#include "headshare/ops/linear.h"

namespace headshare {

// g = norm(act(A h + b)) gives logits g U^T + c: U is the token embedding where that is tied, c a bias for each token.
// g is as wide as the token embedding, which is narrower than h where it is factorised.
class MaskedHeadImpl : public Layer {
 public:
  MaskedHeadImpl(const EncoderOptions& resolved, const Tensor& token_embedding);

  Tensor logits(const Tensor& hidden) const;  // [.., E] -> [.., V]

  // Sums -log p(targets) over rows of hidden states [N, E], targets int64 [N] or kIgnoredTarget; the logits of all rows
  // are never held at once.
  Tensor loss_sum(const Tensor& rows, const Tensor& targets) const;
  DistilledLoss loss_sum(const Tensor& rows, const Tensor& targets, const TeacherRows& teacher,
                         const Distillation& how) const;
  Tensor losses(const Tensor& rows, const Tensor& targets) const;  // row by row, [N], without gradients

  // Returns what a student needs to form this head's logits of rows [N, E]; it shares the head's memory.
  TeacherRows teacher_rows(const Tensor& rows) const;

 private:
  Tensor transformed(const Tensor& hidden) const;

  ActivationKind activation_;
  Linear dense_;
  Norm norm_;
  Tensor embedding_, bias_;
};
TORCH_MODULE(MaskedHead);

}  // namespace headshare
