#include <ATen/ATen.h>

#include <limits>
#include <numeric>

#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_dropout.h"
#include "headshare/ops/head_attention/head_weights.h"

namespace headshare {

Tensor expand_heads(const Tensor& x, int64_t heads) {
  if (x.size(1) == heads) return x;
  if (x.size(1) == 1) return x.expand({x.size(0), heads, x.size(2), x.size(3)});
  return x.repeat_interleave(heads / x.size(1), /*dim=*/1);
}

Precision libtorch_products(const HeadProblem& p) {
  const bool narrow =
      p.query.scalar_type() == at::kBFloat16 || ComputeIn::current(p.query.device().type()) == Precision::kBf16;
  return narrow ? Precision::kBf16 : Precision::kFp32;
}

Tensor visible_pairs(const HeadProblem& problem, const HeadMask& mask, int64_t first) {
  const int64_t T = problem.query.size(2), S = problem.key.size(2), W = mask.window;
  const auto options = problem.key.options().dtype(at::kBool);
  Tensor pairs;
  if (mask.causal && first + 1 < S) pairs = at::ones({1, 1, T, S}, options).tril(first);
  if (has_window(problem, mask, first)) {
    const Tensor near = (pairs.defined() ? pairs : at::ones({1, 1, T, S}, options)).triu(first - W);
    pairs = mask.causal ? near : near.tril(first + W);
  }
  if (mask.visible_keys.defined()) {
    const Tensor keys = mask.visible_keys.view({-1, 1, 1, S});
    pairs = pairs.defined() ? pairs.logical_and(keys) : keys;
  }
  return pairs;
}

Tensor dead_rows(const Tensor& live) {
  return live.defined() ? live.logical_not().unsqueeze(1).unsqueeze(3) : Tensor();
}

namespace {

// Returns a [B, H, T, X] times b [B, g, X, Y], where g divides H -> [B, H, T, Y]; the heads of a group are stacked
// along T, so that b is read once for all of them and never repeated.
Tensor grouped_matmul(const Tensor& a, const Tensor& b) {
  const int64_t B = a.size(0), H = a.size(1), T = a.size(2), X = a.size(3), g = b.size(1);
  if (g == H) return a.matmul(b);
  return a.reshape({B, g, H / g * T, X}).matmul(b).reshape({B, H, T, b.size(3)});
}

// Returns [1, H, T, S]: -slope * distance.
Tensor alibi_bias(const HeadProblem& problem, const Tensor& slopes, int64_t first) {
  const int64_t T = problem.query.size(2);
  const int64_t S = problem.key.size(2);
  const Tensor query_at = at::arange(first, first + T, slopes.options()).view({T, 1});
  const Tensor distance = (query_at - at::arange(S, slopes.options())).abs();
  return -slopes.view({1, -1, 1, 1}) * distance;
}

// Returns scale * (q.k + c) + ALiBi, [B, heads that differ, T, S].
Tensor scores_of(const HeadProblem& p, const HeadMask& mask, int64_t first) {
  const int64_t products = std::lcm(p.query.size(1), p.key.size(1));  // divides H, as both do
  Tensor scores = grouped_matmul(expand_heads(p.query * p.scale, products), p.key.transpose(2, 3));
  const bool per_head = p.query_shift.defined() || p.key_bias.defined() || mask.alibi_slopes.defined();
  if (per_head && products > 1) scores = expand_heads(scores, p.heads);
  if (p.query_shift.defined()) {
    const Tensor shift = p.query_shift.matmul(p.key.squeeze(1).transpose(1, 2));  // [B, H, S]
    scores = scores + (shift * p.scale).unsqueeze(2);
  }
  if (p.key_bias.defined()) scores = scores + (p.key_bias * p.scale).unsqueeze(2);
  if (mask.alibi_slopes.defined()) scores = scores + alibi_bias(p, mask.alibi_slopes, first);
  return scores;
}

// Returns [B, heads that differ, T, S]. Queries that see nothing, `dead`, get an unmasked softmax, whose result is then
// put to zero: a softmax over minus infinities would make their gradients NaN.
Tensor weights_of(const HeadProblem& p, const HeadMask& mask, int64_t first, const Tensor& dead) {
  Tensor scores = scores_of(p, mask, first);
  const Tensor visible = visible_pairs(p, mask, first);
  if (visible.defined()) {
    const Tensor hidden = dead.defined() ? visible.logical_or(dead).logical_not() : visible.logical_not();
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  if (!p.sinks.defined()) return scores.softmax(-1);
  const int64_t S = scores.size(3);
  scores = expand_heads(scores, p.heads);
  const Tensor sinks = p.sinks.to(scores.scalar_type()).view({1, -1, 1, 1});
  const Tensor with_sink = at::cat({scores, sinks.expand({scores.size(0), p.heads, scores.size(2), 1})}, 3);
  return with_sink.softmax(-1).slice(3, 0, S);
}

int64_t first_position(const HeadProblem& p) { return p.key.size(2) - p.query.size(2); }

Tensor run_reference(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  return attend_to_block(p, mask, dropout, {.first_query = first_position(p)});
}

std::vector<std::string> no_objection(const HeadProblem&, const HeadMask&, const HeadDropout&) { return {}; }

}  // namespace

Tensor attend_to_block(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout,
                       const BlockPlace& place) {
  const Tensor dead = dead_rows(live_queries(p, mask, place.first_query));
  Tensor weights = weights_of(p, mask, place.first_query, dead);
  if (dropout.active()) {
    // Heads that have their scores in common differ once each drops its own.
    if (!dropout.shared) weights = expand_heads(weights, p.heads);
    weights = weights * dropout_factors(dropout, p.heads, weights, {dropout.first_query, place.first_key});
  }
  Tensor heads = grouped_matmul(expand_heads(weights, p.heads), p.value);  // [B, H, T, Dv]
  return dead.defined() ? heads.masked_fill(dead, 0.0) : heads;
}

Tensor head_weights(const HeadProblem& problem, const HeadMask& mask) {
  const Tensor dead = dead_rows(live_queries(problem, mask));
  const Tensor weights = expand_heads(weights_of(problem, mask, first_position(problem), dead), problem.heads);
  return dead.defined() ? weights.masked_fill(dead, 0.0) : weights;
}

const HeadBackend kReferenceBackend = {.name = "reference",
                                       .summary = "plain formula over the whole score matrix",
                                       .products = libtorch_products,
                                       .objections = no_objection,
                                       .run = run_reference};

}  // namespace headshare
