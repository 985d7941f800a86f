// Computes heads that differ by a bias only from one score matrix, in plain operations on every device. With
// score_h[i,j] = s[i,j] + c_h[j], P0 = exp(s - its row's maximum) and w_h = exp(c_h - max_j c_h):
//   O_h = (P0 (w_h V)) / (P0 w_h)
// so that all heads are one wide product [T, S] by [S, H Dv]. A row underflows where every key that it sees has w_h =
// 0, which takes scores that differ by 87 in float32 and by 700 in float64.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <limits>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_dropout.h"

namespace headshare {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

std::vector<std::string> why_not_wide(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  std::vector<std::string> reasons;
  if (p.query.size(1) != 1 || p.key.size(1) != 1 || p.value.size(1) != 1) {
    reasons.push_back(join_text("it needs one head of queries, keys and values, not ", p.query.size(1), ", ",
                                p.key.size(1), " and ", p.value.size(1)));
  }
  if (!p.query_shift.defined() && !p.key_bias.defined()) reasons.emplace_back("no bias makes the heads differ");
  if (p.sinks.defined()) reasons.emplace_back("it has no sinks");
  if (mask.alibi_slopes.defined()) reasons.emplace_back("distances are no term for each key (ALiBi)");
  if (dropout.active() && !dropout.shared) {
    reasons.emplace_back("a dropout mask for each head does not factorise; a shared one does");
  }
  return reasons;
}

// Returns the tensors in the type that sums are taken in.
HeadProblem in_sum_type(HeadProblem p) {
  const at::ScalarType type = at::toOpMathType(p.query.scalar_type());
  for (Tensor* one : {&p.query, &p.key, &p.value, &p.query_shift, &p.key_bias}) {
    if (one->defined()) *one = one->to(type);
  }
  return p;
}

// Returns P0 without the dimension of heads, [B, T, S]; rows that see nothing see everything, and are put to zero in
// the end.
Tensor shared_weights(const HeadProblem& p, const Tensor& visible, const Tensor& dead) {
  Tensor scores = (p.query * p.scale).matmul(p.key.transpose(2, 3));
  if (visible.defined()) {
    scores = scores.masked_fill((dead.defined() ? visible.logical_or(dead) : visible).logical_not(), kNothing);
  }
  return (scores - scores.amax(-1, /*keepdim=*/true).detach()).exp().squeeze(1);
}

// Returns w, [B, H, S]; keys that are hidden from all queries have 0 and do not count in the maximum.
Tensor key_weights(const HeadProblem& p, const HeadMask& mask) {
  Tensor bias;
  if (p.query_shift.defined()) bias = p.query_shift.matmul(p.key.squeeze(1).transpose(1, 2)) * p.scale;
  if (p.key_bias.defined()) bias = bias.defined() ? bias + p.key_bias * p.scale : p.key_bias * p.scale;
  if (mask.visible_keys.defined()) {
    bias = bias.masked_fill(mask.visible_keys.logical_not().unsqueeze(1), kNothing);
  }
  const Tensor largest = bias.amax(-1, /*keepdim=*/true).detach();
  return (bias - largest.masked_fill(largest.isinf(), 0)).exp();
}

Tensor run_wide(const HeadProblem& given, const HeadMask& mask, const HeadDropout& dropout) {
  const HeadProblem p = in_sum_type(given);
  const int64_t B = p.query.size(0), T = p.query.size(2), S = p.key.size(2), Dv = p.value.size(3);
  const Tensor dead = dead_rows(live_queries(p, mask, S - T));  // [B or 1, 1, T, 1]
  Tensor weights = shared_weights(p, visible_pairs(p, mask, S - T), dead);
  const Tensor w = key_weights(p, mask).transpose(1, 2);  // [B, S, H]
  Tensor sums = weights.matmul(w);                        // [B, T, H]
  if (dead.defined()) sums = sums.masked_fill(dead.squeeze(1), 1);
  if (dropout.active()) {
    const Tensor heads = weights.unsqueeze(1);
    weights = weights * dropout_factors(dropout, p.heads, heads, {.first_query = dropout.first_query}).squeeze(1);
  }
  const Tensor wide = (w.unsqueeze(3) * p.value.squeeze(1).unsqueeze(2)).reshape({B, S, p.heads * Dv});
  const Tensor heads = weights.matmul(wide).view({B, T, p.heads, Dv}) / sums.unsqueeze(3);
  const Tensor out = heads.transpose(1, 2).to(given.query.scalar_type());
  return dead.defined() ? out.masked_fill(dead, 0) : out;
}

}  // namespace

const HeadBackend kWideBackend = {.name = "wide",
                                  .summary = "plain formula of heads that differ by a bias only, as one product",
                                  .products = libtorch_products,
                                  .objections = why_not_wide,
                                  .run = run_wide};

}  // namespace headshare
