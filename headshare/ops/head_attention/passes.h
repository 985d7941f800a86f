// attend() as two passes without autograd, for callers that have an autograd of their own (headshare/torch_library).
#pragma once

#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {

// A forward pass returns these. The backward pass needs them all.
struct AttendPass {
  Tensor out;  // [B, H, T, Dv], as attend() returns it
  // These are undefined where the backend or the problem does not have them: lse float [B, H, T], m float [B, T] and
  // by_head bool [B, H, attend_blocks(T)] (kernels/factorised.h).
  Tensor lse = {}, m = {}, by_head = {};
  const HeadBackend* backend = nullptr;  // null for a problem without queries or keys
};

// Returns what attend() returns, by the backend that it would use. `gradients` says whether attend_backward() will
// follow.
AttendPass attend_forward(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout, bool gradients);

// Gradients are shaped as the tensors of the problem; undefined where those are.
struct ProblemGradients {
  Tensor query, key, value, query_shift, key_bias, sinks;
};

// Returns the gradients for `gradient`, that of pass.out. A backend without passes of its own computes its forward pass
// again. Whoever gives p, a mask or a key other than those of the forward pass gets other gradients.
ProblemGradients attend_backward(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout,
                                 const AttendPass& pass, const Tensor& gradient);

// Returns the last dimension of AttendPass::by_head.
int64_t attend_blocks(int64_t queries);

}  // namespace headshare
