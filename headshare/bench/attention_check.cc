#include "headshare/bench/attention_check.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention_backends.h"

namespace headshare {
namespace {

constexpr int64_t kBlockRows = 16;
constexpr double kRoundings = 64;  // epsilons of the result's magnitude on top of the plain formula's own error

std::vector<std::pair<int64_t, int64_t>> blocks_of_queries(int64_t T) {
  if (T <= 4 * kBlockRows) return {{0, T}};
  // The two in the middle begin at odd places, away from any kernel's block edges.
  std::vector<std::pair<int64_t, int64_t>> blocks;
  for (const int64_t first : {int64_t{0}, T / 3 | 1, 2 * T / 3 | 1, T - kBlockRows}) {
    const int64_t begin = blocks.empty() ? first : std::max(first, blocks.back().second);
    blocks.emplace_back(begin, std::min(begin + kBlockRows, T));
  }
  return blocks;
}

double error_of(const Tensor& actual, const Tensor& expected) {
  if (expected.numel() == 0) return 0;
  const double largest = (actual.to(at::kDouble) - expected).abs().max().item<double>();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

// The plain formula over some blocks of queries of the last sentence.
struct Formula {
  Tensor heads;                   // [H, queries of all blocks, D]
  std::vector<Tensor> gradients;  // of the last sentence's leaves; of the shift
};

Formula plain_formula(const HeadProblem& problem, const HeadMask& mask, const Tensor& output_gradient,
                      const std::vector<std::pair<int64_t, int64_t>>& blocks, at::ScalarType type) {
  const auto last = [type](const Tensor& x) { return x.detach().slice(0, x.size(0) - 1).to(type).requires_grad_(); };
  const int64_t T = problem.query.size(2), S = problem.key.size(2);
  const Tensor query = last(problem.query), key = last(problem.key);
  const bool one_memory = problem.value.is_same(problem.key);
  const Tensor value = one_memory ? key : last(problem.value);
  std::vector<Tensor> leaves = {query, key};
  if (!one_memory) leaves.push_back(value);
  if (problem.query_shift.defined()) leaves.push_back(problem.query_shift.detach().to(type).requires_grad_());
  const Tensor gradient = output_gradient.slice(0, output_gradient.size(0) - 1).to(type);
  std::vector<Tensor> parts, part_gradients;
  for (const auto& [first, end] : blocks) {
    // Under a causal mask a block of queries against the keys it reaches is bottom-right aligned again.
    const int64_t reached = mask.causal ? std::clamp<int64_t>(end + S - T, 0, S) : S;
    HeadProblem block = {.heads = problem.heads,
                         .query = query.slice(2, first, end),
                         .key = key.slice(2, 0, reached),
                         .value = value.slice(2, 0, reached),
                         .scale = problem.scale};
    if (problem.query_shift.defined()) block.query_shift = leaves.back();
    parts.push_back(kReferenceBackend.run(block, mask, {}));
    part_gradients.push_back(gradient.slice(2, first, end));
  }
  const Tensor heads = at::cat(parts, 2);
  const auto gradients = torch::autograd::grad({heads}, leaves, {at::cat(part_gradients, 2)});
  return {heads.detach().squeeze(0), gradients};
}

// Gradients of heads that a contender keeps one by one, summed to the heads of the problem.
Tensor sum_to_heads(const Tensor& gradient, int64_t heads) {
  const int64_t own = gradient.size(1);
  if (own == heads) return gradient;
  return gradient.unflatten(1, {heads, own / heads}).sum(2);
}

// Of the leaves, in their order.
std::vector<std::string> leaf_names(const HeadProblem& problem) {
  std::vector<std::string> names = {"queries", "keys", "values"};
  if (problem.value.is_same(problem.key)) names = {"queries", "keys and values"};
  if (problem.query_shift.defined()) names.emplace_back("query shift");
  return names;
}

Objection compare(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  const double error = error_of(actual, expected);
  if (error <= tolerance) return std::nullopt;
  return join_text(what, " differ from the plain formula by ", error, ", allowed ", tolerance);
}

}  // namespace

FormulaCheck::FormulaCheck(const AttentionInputs& in, Pass pass)
    : pass_(pass), blocks_(blocks_of_queries(in.queries.size(2))) {
  HS_DCHECK(!in.dropout.active());
  const HeadProblem problem = in.problem();
  const int64_t B = in.queries.size(0);
  output_gradient_ = at::zeros_like(in.output_gradient);
  for (const auto& [first, end] : blocks_) {
    const auto part = [&, f = first, e = end](const Tensor& x) { return x.slice(0, B - 1).slice(2, f, e); };
    part(output_gradient_).copy_(part(in.output_gradient));
  }
  const auto type = in.queries.scalar_type();
  const Formula exact = plain_formula(problem, in.mask, in.output_gradient, blocks_, at::kDouble);
  const Formula rounded = plain_formula(problem, in.mask, in.output_gradient, blocks_, type);
  const double epsilon = type == at::kBFloat16 ? 1.0 / 128 : std::numeric_limits<float>::epsilon();
  const auto expect = [&](std::string what, const Tensor& value, const Tensor& plain) {
    const double magnitude = std::max(1.0, value.abs().max().item<double>());
    // bfloat16's own error is of the size of an epsilon already: few roundings make it.
    const double roundings = type == at::kBFloat16 ? 4 : kRoundings;
    return Expected{std::move(what), value, 2 * error_of(plain, value) + roundings * epsilon * magnitude};
  };
  heads_ = expect("heads", exact.heads, rounded.heads);
  const std::vector<std::string> names = leaf_names(problem);
  for (size_t i = 0; i < names.size(); ++i) {
    gradients_.push_back(expect("gradients of " + names[i], exact.gradients[i], rounded.gradients[i]));
  }
}

Objection FormulaCheck::operator()(const Contender& contender) const {
  const int64_t B = output_gradient_.size(0);
  const auto rows = [&](const Tensor& heads) {
    std::vector<Tensor> parts;
    for (const auto& [first, end] : blocks_) parts.push_back(heads[B - 1].slice(1, first, end));
    return at::cat(parts, 1);
  };
  if (pass_ == Pass::kForward) {
    const at::NoGradGuard no_grad;
    const Tensor heads = contender.heads();
    HS_CHECK(heads.sizes() == output_gradient_.sizes(), "heads of shape ", heads.sizes(), " instead of ",
             output_gradient_.sizes());
    return compare(rows(heads), heads_.value, heads_.tolerance, heads_.what);
  }
  const Gradients result = run_training(contender, output_gradient_);
  const at::NoGradGuard no_grad;
  if (const auto wrong = compare(rows(result.heads), heads_.value, heads_.tolerance, heads_.what)) return wrong;
  for (size_t i = 0; i < std::min(gradients_.size(), result.leaves.size()); ++i) {
    const Expected& expected = gradients_[i];
    const bool is_shift = expected.value.dim() == 2;  // [H, Dk]
    const Tensor gradient =
        is_shift ? result.leaves[i] : sum_to_heads(result.leaves[i].slice(0, B - 1), expected.value.size(1));
    if (const auto wrong = compare(gradient, expected.value, expected.tolerance, expected.what)) return wrong;
  }
  return std::nullopt;
}

Objection check_dropout_statistics(const Contender& contender, const AttentionInputs& uniform) {
  const at::NoGradGuard no_grad;
  const int64_t T = uniform.queries.size(2), S = uniform.memory[0].size(2);
  const double p = uniform.dropout.p;
  // Rows that see few keys are far from normal, so the first ones of a causal mask are left out.
  const int64_t first = std::min<int64_t>(uniform.mask.causal ? 32 : 0, T - 1);
  const Tensor sums = contender.heads().select(3, 0).to(at::kDouble).slice(2, first);  // [B, H, T]
  Tensor seen = at::full({T - first}, static_cast<double>(S), at::kDouble);
  if (uniform.mask.causal) seen = at::arange(S - T + first + 1, S + 1, at::kDouble);
  const Tensor z = (sums - 1) * (seen * ((1 - p) / p)).sqrt();
  const double mean = z.mean().item<double>(), variance = z.square().mean().item<double>();
  // Heads may share a mask, so only sentences and queries count as independent draws.
  const double draws = static_cast<double>(z.size(0) * z.size(2));
  const double rounding = uniform.queries.scalar_type() == at::kBFloat16 ? 0.2 : 0.01;  // of sums near 1
  if (std::abs(mean) > 6 / std::sqrt(draws) + rounding ||
      std::abs(variance - 1) > 6 * std::sqrt(3 / draws) + rounding) {
    return join_text("dropout ", p, " gives weights whose sums have a mean of ", mean, " and a variance of ", variance,
                     " where 0 and 1 are expected (standardised, ", draws, " draws)");
  }
  return std::nullopt;
}

Objection check_dropout_gradient(const Contender& contender) {
  const Tensor heads = contender.heads();
  const auto gradients = torch::autograd::grad({heads}, contender.leaves, {heads.detach()});
  const at::NoGradGuard no_grad;
  const auto dot = [](const Tensor& a, const Tensor& b) {
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum().item<double>();
  };
  const double forward = dot(heads, heads);
  const std::vector<Tensor>& leaves = contender.leaves;
  const bool one_memory = leaves.size() == 2;
  double backward = dot(gradients[one_memory ? 1 : 2], leaves[one_memory ? 1 : 2]);
  if (one_memory) backward -= dot(gradients[0], leaves[0]);
  // Another mask would miss the part of the square that dropout itself made, p / (1 - p) of it.
  const double allowed = forward * (heads.scalar_type() == at::kBFloat16 ? 2e-2 : 1e-3);
  if (std::abs(forward - backward) <= allowed) return std::nullopt;
  return join_text("backward used another dropout mask than forward: <heads, heads> = ", forward,
                   ", <values, their gradient> = ", backward, ", allowed difference ", allowed);
}

}  // namespace headshare
