// Computes the loss of a large output layer in pieces: no more than a chunk of the [N, V] scores is ever held.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headshare {

using at::Tensor;

// Returns sum_i -log softmax(W h_i + b)[t_i] over the rows i whose target is not `ignored`: a scalar in nats, 0 when
// there are none.
//   hidden [N, E], embedding W [V, E], targets t int64 [N], each `ignored` or in 0 .. V - 1 (else Error),
//   b [V] or undefined
// Gradients of hidden (zero in ignored rows), embedding and b are computed with the loss, while a chunk's
// scores are at hand, and wait for the backward pass, which can therefore run once. In float64 and
// float32 everything is of the inputs' type; under autocast, and for bfloat16 inputs, the products take
// bfloat16; scores, softmax, loss and gradients are float32.
Tensor cross_entropy_sum(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                         const Tensor& bias = {});

// This is the output layer of a teacher for the same rows: scores G g_i + c. No gradients are computed for these.
struct TeacherRows {
  Tensor hidden;     // g [N, F]
  Tensor embedding;  // G [V, F]
  Tensor bias = {};  // c [V] or undefined
};

// This says how much of a loss comes from a teacher.
struct Distillation {
  double share = 0;        // A, 0 .. 1
  double temperature = 1;  // T above 0
};

struct DistilledLoss {
  Tensor sum;    // what is learnt from, with gradients as cross_entropy_sum has them
  Tensor plain;  // cross_entropy_sum of the same, without gradients
};

// Returns sum_i (1 - A) cross entropy_i + A T^2 KL(softmax(teacher's scores_i / T) || softmax(scores_i / T)), over the
// rows that have a target (Hinton et al., 2015). T^2 keeps the gradients of the divergence as large as those at T = 1.
// With A = 0 it is cross_entropy_sum to the last bit, and the teacher is not looked at. A chunk of the teacher's scores
// is held besides; on a GPU and in float64 a chunk has temporaries. bfloat16 products have one chunk more, as without
// it.
DistilledLoss distilled_cross_entropy_sum(const Tensor& hidden, const Tensor& embedding, const Tensor& targets,
                                          int64_t ignored, const Tensor& bias, const TeacherRows& teacher,
                                          const Distillation& how);

// Returns cross_entropy_sum row by row, [N], 0 where ignored; without gradients.
Tensor cross_entropy_rows(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                          const Tensor& bias = {});

// Returns how many of N rows a chunk has with a vocabulary of V; the last chunk may have fewer, and scores that are few
// enough are one chunk.
int64_t cross_entropy_chunk(int64_t N, int64_t V);

}  // namespace headshare
