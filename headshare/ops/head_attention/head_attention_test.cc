// Tests the attention core forward: every backend on every case, against the formula in plain loops.
#include "headshare/ops/head_attention/head_attention.h"

#include <gtest/gtest.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

template <class Real>
std::vector<Real> numbers(const Tensor& x) {
  if (!x.defined()) return {};
  const Tensor doubles = x.detach().cpu().to(at::kDouble).contiguous();
  return {doubles.data_ptr<double>(), doubles.data_ptr<double>() + doubles.numel()};
}

// Computes the formula of head_attention.h in plain loops.
template <class Real>
class PlainAttention {
 public:
  PlainAttention(const HeadProblem& p, const HeadMask& mask)
      : p_(p),
        mask_(mask),
        q_(numbers<Real>(p.query)),
        k_(numbers<Real>(p.key)),
        v_(numbers<Real>(p.value)),
        shift_(numbers<Real>(p.query_shift)),
        bias_(numbers<Real>(p.key_bias)),
        sinks_(numbers<Real>(p.sinks)),
        slopes_(numbers<Real>(mask.alibi_slopes)),
        visible_(numbers<Real>(mask.visible_keys)) {}

  Tensor result() const {
    const int64_t B = p_.query.size(0), T = p_.query.size(2), Dv = p_.value.size(3);
    Tensor out = at::zeros({B, p_.heads, T, Dv}, at::kDouble);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t h = 0; h < p_.heads; ++h) {
        for (int64_t i = 0; i < T; ++i) row(b, h, i, out[b][h][i].data_ptr<double>());
      }
    }
    return out;
  }

 private:
  // Returns the index of b, h, i, d in x, where head h reads one of `x.size(1)`.
  int64_t at(const Tensor& x, int64_t b, int64_t h, int64_t i, int64_t d) const {
    const int64_t head = h / (p_.heads / x.size(1));
    return ((b * x.size(1) + head) * x.size(2) + i) * x.size(3) + d;
  }

  bool sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t T = p_.query.size(2), S = p_.key.size(2);
    if (mask_.causal && j > i + S - T) return false;
    if (mask_.window > 0 && std::abs(i + S - T - j) > mask_.window) return false;
    return visible_.empty() || visible_[b * S + j] != 0;
  }

  Real score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t T = p_.query.size(2), S = p_.key.size(2), Dk = p_.key.size(3);
    Real sum = bias_.empty() ? Real(0) : bias_[(b * p_.heads + h) * S + j];
    for (int64_t d = 0; d < Dk; ++d) {
      const Real shift = shift_.empty() ? Real(0) : shift_[h * Dk + d];
      sum += (q_[at(p_.query, b, h, i, d)] + shift) * k_[at(p_.key, b, h, j, d)];
    }
    sum *= static_cast<Real>(p_.scale);
    return slopes_.empty() ? sum : sum - slopes_[h] * static_cast<Real>(std::abs(i + S - T - j));
  }

  void row(int64_t b, int64_t h, int64_t i, double* out) const {
    const int64_t S = p_.key.size(2), Dv = p_.value.size(3);
    std::vector<Real> weights(S, Real(0));
    Real largest = -std::numeric_limits<Real>::infinity();
    for (int64_t j = 0; j < S; ++j) {
      if (sees(b, i, j)) largest = std::max(largest, weights[j] = score(b, h, i, j));
    }
    const bool seen = !std::isinf(largest);
    if (!sinks_.empty()) largest = std::max(largest, sinks_[h]);
    Real sum = sinks_.empty() || !seen ? Real(0) : std::exp(sinks_[h] - largest);
    for (int64_t j = 0; j < S; ++j) {
      weights[j] = sees(b, i, j) ? std::exp(weights[j] - largest) : Real(0);
      sum += weights[j];
    }
    for (int64_t d = 0; d < Dv; ++d) {
      Real average = 0;
      for (int64_t j = 0; j < S; ++j) average += weights[j] * v_[at(p_.value, b, h, j, d)];
      out[d] = sum > 0 ? static_cast<double>(average / sum) : 0.0;
    }
  }

  const HeadProblem& p_;
  const HeadMask& mask_;
  std::vector<Real> q_, k_, v_, shift_, bias_, sinks_, slopes_, visible_;
};

// Checks every backend on every case that it takes, against the loops.
void check_cases(at::TensorOptions options) {
  for (const HeadCase& one : head_cases()) {
    const HeadInputs in = make_inputs(one, options);
    const Tensor expected = PlainAttention<double>(in.problem, in.mask).result();
    double tolerance = 1e-12 * magnitude(in.problem.value);
    if (options.dtype() == at::kFloat) {
      // The tolerance is twice the error of the same maths done plainly, plus rounding of the result.
      const double plain_error = distance(PlainAttention<float>(in.problem, in.mask).result(), expected);
      tolerance = 2 * plain_error + 4 * std::numeric_limits<float>::epsilon() * magnitude(in.problem.value);
    }
    for (const HeadBackend& backend : head_backends()) {
      if (!can_run(backend, in)) continue;
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      // The factorised form rounds the two parts of an exponent apart; with ALiBi each may be near 100.
      const bool apart = one.alibi && backend.name == kFactorisedBackend.name && options.dtype() == at::kFloat;
      const double more = apart ? 32 * std::numeric_limits<float>::epsilon() * magnitude(in.problem.value) : 0;
      const Tensor actual = attend_with(backend, in);
      EXPECT_EQ(actual.scalar_type(), in.problem.query.scalar_type());
      EXPECT_TRUE(close(actual, expected, tolerance + more));
    }
  }
}

TEST(HeadAttention, EqualsPlainLoopsInDouble) { check_cases(at::kDouble); }
TEST(HeadAttention, IsAsExactInFloatAsPlainLoops) { check_cases(at::kFloat); }
TEST(HeadAttention, RunsOnCuda) {
  HS_NEEDS_CUDA();
  check_cases(at::device(at::kCUDA).dtype(at::kDouble));
}

TEST(HeadAttention, EveryBackendTakesSomeCases) {
  for (const HeadBackend& backend : head_backends()) {
    int taken = 0;
    for (const HeadCase& one : head_cases()) taken += can_run(backend, make_inputs(one, at::kFloat)) ? 1 : 0;
    EXPECT_GE(taken, 3) << backend.name;
    EXPECT_FALSE(backend.summary.empty());
  }
}

}  // namespace
}  // namespace headshare
