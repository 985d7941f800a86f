#include "headshare/bench/attention_check.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"

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

// This is the plain formula over some blocks of queries of the last sentence.
struct Formula {
  Tensor heads;                   // [H, queries of all blocks, D]
  std::vector<Tensor> gradients;  // of the last sentence's leaves; of the shift
};

// This is the problem of the last sentence, and what gradients are for.
struct Plain {
  HeadProblem problem;
  std::vector<Tensor> leaves;
};

Tensor last_sentence(const Tensor& x, at::ScalarType type) {
  return x.detach().slice(0, x.size(0) - 1).to(type).requires_grad_();
}

// Returns the problem that the scheme poses; `scheme` has parameters of the type.
Plain posed_by(const Scheme& scheme, const CaseInputs& in, at::ScalarType type) {
  Plain plain{.problem = {}, .leaves = {last_sentence(in.queries, type)}};
  Memory memory;
  for (const Tensor& part : in.memory) memory.push_back(last_sentence(part, type));
  plain.leaves.insert(plain.leaves.end(), memory.begin(), memory.end());
  plain.problem = scheme.posed(plain.leaves.front(), std::move(memory)).problem;
  if (plain.problem.query_shift.defined()) plain.leaves.push_back(plain.problem.query_shift);
  return plain;
}

// Returns the problem as a contender gets it that does not pose.
Plain given_ready(const HeadProblem& problem, at::ScalarType type) {
  Plain plain{.problem = problem, .leaves = {}};
  HeadProblem& p = plain.problem;
  p.query = last_sentence(p.query, type);
  p.key = last_sentence(p.key, type);
  plain.leaves = {p.query, p.key};
  if (const auto first = values_in_keys(problem)) {
    p.value = p.key.slice(3, *first, *first + p.value.size(3));
  } else {
    p.value = last_sentence(p.value, type);
    plain.leaves.push_back(p.value);
  }
  if (p.query_shift.defined()) {
    p.query_shift = p.query_shift.detach().to(type).requires_grad_();
    plain.leaves.push_back(p.query_shift);
  }
  return plain;
}

Formula plain_formula(const Plain& plain, const HeadMask& mask, const Tensor& output_gradient,
                      const std::vector<std::pair<int64_t, int64_t>>& blocks) {
  const HeadProblem& p = plain.problem;
  const int64_t T = p.query.size(2), S = p.key.size(2);
  const Tensor gradient = output_gradient.slice(0, output_gradient.size(0) - 1).to(p.query.scalar_type());
  std::vector<Tensor> parts, part_gradients;
  for (const auto& [first, end] : blocks) {
    // Under a causal mask a block of queries against the keys it reaches is bottom-right aligned again.
    const int64_t reached = mask.causal ? std::clamp<int64_t>(end + S - T, 0, S) : S;
    HeadProblem block = p;
    block.query = p.query.slice(2, first, end);
    block.key = p.key.slice(2, 0, reached);
    block.value = p.value.slice(2, 0, reached);
    parts.push_back(kReferenceBackend.run(block, mask, {}));
    part_gradients.push_back(gradient.slice(2, first, end));
  }
  const Tensor heads = at::cat(parts, 2);
  const auto gradients = torch::autograd::grad({heads}, plain.leaves, {at::cat(part_gradients, 2)});
  return {heads.detach().squeeze(0), gradients};
}

// Sums the gradients of heads that a contender keeps one by one to the heads of the problem.
Tensor sum_to_heads(const Tensor& gradient, int64_t heads) {
  const int64_t own = gradient.size(1);
  if (own == heads) return gradient;
  return gradient.unflatten(1, {heads, own / heads}).sum(2);
}

// The scheme hands its queries and its memory on as they are.
bool poses_nothing(const CaseInputs& in, const HeadProblem& problem) {
  return problem.query.is_same(in.queries) && problem.key.is_same(in.memory.front()) &&
         problem.value.is_same(in.memory.back());
}

// Names the leaves in their order. With `values` the values are leaves apart from the keys.
std::vector<std::string> leaf_names(bool values, bool shift) {
  std::vector<std::string> names = {"queries", "keys", "values"};
  if (!values) names = {"queries", "keys and values"};
  if (shift) names.emplace_back("query shift");
  return names;
}

Objection compare(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  const double error = error_of(actual, expected);
  if (error <= tolerance) return std::nullopt;
  return join_text(what, " differ from the plain formula by ", error, ", allowed ", tolerance);
}

}  // namespace

FormulaCheck::FormulaCheck(const CaseInputs& in, Pass pass)
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
  const double epsilon = type == at::kBFloat16 ? 1.0 / 128 : std::numeric_limits<float>::epsilon();
  const auto expect = [&](std::string what, const Tensor& value, const Tensor& plain) {
    const double magnitude = std::max(1.0, value.abs().max().item<double>());
    // bfloat16's own error is of the size of an epsilon already: few roundings make it.
    const double roundings = type == at::kBFloat16 ? 4 : kRoundings;
    return Expected{std::move(what), value, 2 * error_of(plain, value) + roundings * epsilon * magnitude};
  };
  const auto expect_gradients = [&](const Plain& in_double, const Plain& in_type, bool values) {
    const Formula exact = plain_formula(in_double, in.mask, in.output_gradient, blocks_);
    const Formula rounded = plain_formula(in_type, in.mask, in.output_gradient, blocks_);
    heads_ = expect("heads", exact.heads, rounded.heads);
    const std::vector<std::string> names = leaf_names(values, problem.query_shift.defined());
    std::vector<Expected> gradients;
    for (size_t i = 0; i < names.size(); ++i) {
      gradients.push_back(expect("gradients of " + names[i], exact.gradients[i], rounded.gradients[i]));
    }
    return gradients;
  };
  of_problem_ =
      expect_gradients(given_ready(problem, at::kDouble), given_ready(problem, type), !values_in_keys(problem));
  of_inputs_ = poses_nothing(in, problem) ? of_problem_
                                          : expect_gradients(posed_by(*in_double(*in.scheme), in, at::kDouble),
                                                             posed_by(*in.scheme, in, type), in.memory.size() > 1);
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
  const std::vector<Expected>& gradients = contender.poses ? of_inputs_ : of_problem_;
  for (size_t i = 0; i < std::min(gradients.size(), result.leaves.size()); ++i) {
    const Expected& expected = gradients[i];
    const bool is_shift = expected.value.dim() == 2;  // [H, Dk]
    const Tensor gradient =
        is_shift ? result.leaves[i] : sum_to_heads(result.leaves[i].slice(0, B - 1), expected.value.size(1));
    if (const auto wrong = compare(gradient, expected.value, expected.tolerance, expected.what)) return wrong;
  }
  return std::nullopt;
}

Objection check_dropout_statistics(const Contender& contender, const CaseInputs& uniform) {
  const at::NoGradGuard no_grad;
  const int64_t T = uniform.queries.size(2), S = uniform.memory[0].size(2);
  const double p = uniform.dropout.p;
  // Rows that see few keys are far from normal, so the first ones of a causal mask are left out.
  const int64_t first = std::min<int64_t>(uniform.mask.causal ? 32 : 0, T - 1);
  const HeadProblem problem = uniform.problem();
  const Tensor value = expand_heads(problem.value, problem.heads).slice(0, 0, 1).slice(2, 0, 1).to(at::kDouble);
  const Tensor heads = contender.heads().to(at::kDouble).slice(2, first);  // [B, H, T, D]: weights times the value
  const Tensor sums = (heads * value).sum(3) / value.square().sum(3);      // [B, H, T]
  Tensor seen = at::full({T - first}, static_cast<double>(S), sums.options());
  if (uniform.mask.causal) seen = at::arange(S - T + first + 1, S + 1, sums.options());
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
