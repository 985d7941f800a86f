#include "headshare/ops/head_attention.h"

#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/head_attention_backends.h"
#include "headshare/ops/head_attention_cases.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

template <class Real>
std::vector<Real> numbers(const Tensor& x) {
  if (!x.defined()) return {};
  const Tensor doubles = x.detach().cpu().to(at::kDouble).contiguous();
  return {doubles.data_ptr<double>(), doubles.data_ptr<double>() + doubles.numel()};
}

// The formula of head_attention.h in plain loops.
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
  // Number b, h, i, d of x, where head h reads one of `x.size(1)`.
  int64_t at(const Tensor& x, int64_t b, int64_t h, int64_t i, int64_t d) const {
    const int64_t head = h / (p_.heads / x.size(1));
    return ((b * x.size(1) + head) * x.size(2) + i) * x.size(3) + d;
  }

  bool sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t T = p_.query.size(2), S = p_.key.size(2);
    if (mask_.causal && j > i + S - T) return false;
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
    Real sum = 0;
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
  std::vector<Real> q_, k_, v_, shift_, bias_, slopes_, visible_;
};

bool can_run(const HeadBackend& backend, const HeadInputs& in) {
  return backend.why_not(in.problem, in.mask, {}).empty();
}

Tensor attend_with(const HeadBackend& backend, const HeadInputs& in) {
  const ScopedEnvironment forced("HEADSHARE_BACKEND", std::string(backend.name).c_str());
  return attend(in.problem, in.mask, {});
}

// Every backend on every case it takes, against the loops.
void check_cases(at::TensorOptions options) {
  for (const HeadCase& one : head_cases()) {
    const HeadInputs in = make_inputs(one, options);
    const Tensor expected = PlainAttention<double>(in.problem, in.mask).result();
    double tolerance = 1e-12 * magnitude(in.problem.value);
    if (options.dtype() == at::kFloat) {
      // Twice the error of the same maths done plainly, plus rounding of the result.
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

// Sum of the output with fixed weights, so that every element has a gradient of its own.
Tensor weighed(const Tensor& x) {
  return (x * at::linspace(-1, 1, x.numel(), x.options().requires_grad(false)).view(x.sizes())).sum();
}

std::vector<Tensor> inputs_of(HeadInputs* in) {
  std::vector<Tensor> inputs = {in->problem.query, in->problem.key, in->problem.value};
  for (const Tensor& x : {in->problem.query_shift, in->problem.key_bias}) {
    if (x.defined()) inputs.push_back(x);
  }
  for (Tensor& x : inputs) x.requires_grad_();
  return inputs;
}

std::vector<Tensor> gradients_of(const HeadBackend& backend, HeadInputs in) {
  const std::vector<Tensor> inputs = inputs_of(&in);
  return torch::autograd::grad({weighed(attend_with(backend, in))}, inputs);
}

TEST(HeadAttention, BackendsAgreeOnGradients) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    const std::vector<Tensor> expected = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
    for (const HeadBackend& backend : head_backends()) {
      const HeadInputs in = make_inputs(one, at::kDouble);
      if (!can_run(backend, in)) continue;
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      const std::vector<Tensor> actual = gradients_of(backend, in);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(actual[i], expected[i], 1e-12 * magnitude(expected[i]))) << "input " << i;
      }
    }
  }
}

// In float the plain formula is wrong by something; twice that is allowed, and some rounding of the largest.
TEST(HeadAttention, GradientsAreAsExactInFloatAsThePlainFormula) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    const std::vector<Tensor> expected = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
    const std::vector<Tensor> plain = gradients_of(kReferenceBackend, make_inputs(one, at::kFloat));
    for (const HeadBackend& backend : head_backends()) {
      HeadInputs in = make_inputs(one, at::kFloat);
      inputs_of(&in);  // some backends have no gradients, and say so
      if (!can_run(backend, in)) continue;
      if (one.scale > 1 && backend.name == kSdpaBackend.name) continue;  // libtorch rounds worse than this there
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      const std::vector<Tensor> actual = gradients_of(backend, in);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Among exponents of some hundred the plain error itself is a lottery.
        const double tolerance = (one.scale > 1 ? 4 : 2) * distance(plain[i], expected[i]) +
                                 16 * std::numeric_limits<float>::epsilon() * magnitude(expected[i]);
        EXPECT_TRUE(close(actual[i], expected[i], tolerance)) << "input " << i;
      }
    }
  }
}

// As under autocast: projections in bf16, queries in float again once a parameter of the scheme has met them.
void expect_all_bf16(const HeadCase& one) {
  const Tensor expected = attend_with(kReferenceBackend, make_inputs(one, at::kDouble));
  HeadInputs in = make_inputs(one, at::kFloat);
  in.problem.key = in.problem.key.to(at::kBFloat16);
  in.problem.value = in.problem.value.to(at::kBFloat16);
  EXPECT_THAT(std::string(choose_head_backend(in.problem, in.mask, {}).name),
              testing::AnyOf("fused", "factorised", "decode"));
  const Tensor actual = attend(in.problem, in.mask, {});
  EXPECT_EQ(actual.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(close(actual, expected, 0x1p-5 * magnitude(expected)));
  if (one.T == 1) return;
  const std::vector<Tensor> inputs = inputs_of(&in);
  const auto gradients = torch::autograd::grad({weighed(attend(in.problem, in.mask, {}))}, inputs);
  const auto exact = gradients_of(kReferenceBackend, make_inputs(one, at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(gradients[i].scalar_type(), inputs[i].scalar_type());
    EXPECT_TRUE(close(gradients[i], exact[i], 0x1p-5 * magnitude(exact[i]))) << "input " << i;
  }
}

TEST(HeadAttention, OneBf16InputMakesItAllBf16) {
  const HeadCase cases[] = {{.name = "mha", .T = 70, .S = 70, .causal = true},
                            {.name = "mhe_add", .Hq = 1, .Hk = 1, .Hv = 1, .T = 70, .S = 70, .shift = true},
                            {.name = "odd", .T = 70, .S = 70, .Dk = 7, .Dv = 5, .causal = true},
                            {.name = "decode", .Hk = 1, .Hv = 1, .T = 1, .S = 70, .key_bias = true}};
  for (const bool widened : ways_to_multiply_bf16()) {
    const WidenedProducts forced(widened);
    for (const HeadCase& one : cases) {
      SCOPED_TRACE(join_text(one.name, widened ? ", widened" : ""));
      expect_all_bf16(one);
    }
  }
}

// eQ . k is large and decides: rounded to bf16 it would move weights by parts in ten.
TEST(HeadAttention, BiasesAreFloatUnderAutocastToo) {
  const HeadCase one{.name = "mhe_add", .Hq = 1, .Hk = 1, .Hv = 1, .T = 3, .S = 70, .scale = 1, .shift = true};
  HeadInputs in = make_inputs(one, at::kFloat);
  in.problem.query_shift = in.problem.query_shift.detach() * 30;
  const Tensor expected = attend_with(kReferenceBackend, in);
  const ComputeIn computing(Precision::kBf16, at::kCPU);
  for (const HeadBackend* backend : {&kFusedBackend, &kFactorisedBackend}) {
    SCOPED_TRACE(backend->name);
    EXPECT_TRUE(close(attend_with(*backend, in), expected, 1e-3 * magnitude(expected)));
  }
}

TEST(HeadAttention, GradientsEqualFiniteDifferences) {
  for (const HeadCase& one : head_cases()) {
    if (one.B * one.H * one.T * one.S > 200 || one.scale > 1) continue;
    SCOPED_TRACE(one.name);
    HeadInputs in = make_inputs(one, at::kDouble);
    std::vector<Tensor> inputs = inputs_of(&in);
    const Tensor out = weighed(attend(in.problem, in.mask, {}));
    if (!out.requires_grad()) continue;  // nothing to attend to
    const std::vector<Tensor> analytic = torch::autograd::grad({out}, inputs);
    const at::NoGradGuard no_grad;
    constexpr double kStep = 1e-5;
    for (size_t n = 0; n < inputs.size(); ++n) {
      double* element = inputs[n].data_ptr<double>();
      for (int64_t i = 0; i < inputs[n].numel(); i += 7) {
        const double middle = element[i];
        element[i] = middle + kStep;
        const double up = weighed(attend(in.problem, in.mask, {})).item<double>();
        element[i] = middle - kStep;
        const double down = weighed(attend(in.problem, in.mask, {})).item<double>();
        element[i] = middle;
        EXPECT_NEAR(analytic[n].contiguous().data_ptr<double>()[i], (up - down) / (2 * kStep), 1e-8) << n << " " << i;
      }
    }
  }
}

// A case that the backend takes, with gradients or one query where it needs that.
HeadCase suited(const HeadBackend& backend, HeadCase one) {
  if (backend.name == kFactorisedBackend.name) one.Hq = one.Hk = one.Hv = 1;
  if (backend.name == kDecodeBackend.name) one.T = 1;
  return one;
}

TEST(HeadAttention, DeadQueriesGiveZerosAndNoGradient) {
  const HeadCase dead = {.name = "", .T = 150, .S = 150, .causal = true, .padding = Padding::kSentence};
  for (const HeadBackend& backend : head_backends()) {
    const HeadCase one = suited(backend, dead);
    SCOPED_TRACE(backend.name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    ASSERT_TRUE(can_run(backend, in));
    EXPECT_EQ(attend_with(backend, in)[0].abs().max().item<float>(), 0.0F);
    if (one.T == 1) continue;  // no gradients
    for (const Tensor& gradient : gradients_of(backend, in)) {
      EXPECT_EQ(gradient[0].abs().max().item<float>(), 0.0F);
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      EXPECT_GT(gradient[1].abs().max().item<float>(), 0.0F);
    }
  }
}

TEST(HeadAttention, NothingHiddenLeaks) {
  for (const HeadCase& one : head_cases()) {
    if (one.padding == Padding::kNone || one.S == 0 || one.B == 0) continue;
    const HeadInputs clean = make_inputs(one, at::kFloat);
    HeadInputs poisoned = make_inputs(one, at::kFloat);
    const Tensor hidden = clean.mask.visible_keys.logical_not().view({one.B, 1, one.S, 1});
    poisoned.problem.key.masked_fill_(hidden, 1e30);
    poisoned.problem.value.masked_fill_(hidden, -1e30);
    if (one.key_bias) poisoned.problem.key_bias.masked_fill_(hidden.squeeze(3), 1e30);
    for (const HeadBackend& backend : head_backends()) {
      if (!can_run(backend, clean)) continue;
      SCOPED_TRACE(join_text(backend.name, " on ", one.name));
      EXPECT_TRUE(at::equal(attend_with(backend, clean), attend_with(backend, poisoned)));
    }
  }
}

TEST(HeadAttention, NoFutureTokenLeaks) {
  const HeadCase causal = {.name = "", .T = 140, .S = 140, .causal = true};
  for (const HeadBackend& backend : head_backends()) {
    SCOPED_TRACE(backend.name);
    HeadInputs in = make_inputs(suited(backend, causal), at::kFloat);
    if (in.problem.query.size(2) == 1) continue;  // the last query has no future
    ASSERT_TRUE(can_run(backend, in));
    const Tensor clean = attend_with(backend, in).slice(2, 0, 100);
    in.problem.key.slice(2, 100).fill_(1e30);
    in.problem.value.slice(2, 100).fill_(-1e30);
    EXPECT_TRUE(at::equal(clean, attend_with(backend, in).slice(2, 0, 100)));
  }
}

TEST(HeadAttention, LiveQueriesAreThoseThatSeeAKey) {
  for (const HeadCase& one : head_cases()) {
    SCOPED_TRACE(one.name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    const Tensor live = live_queries(in.problem, in.mask);
    for (int64_t b = 0; b < one.B; ++b) {
      for (int64_t i = 0; i < one.T; ++i) {
        const int64_t keys = one.causal ? std::min(one.S, std::max<int64_t>(0, i + 1 + one.S - one.T)) : one.S;
        bool sees = keys > 0;
        if (sees && in.mask.visible_keys.defined()) sees = in.mask.visible_keys[b].slice(0, 0, keys).any().item<bool>();
        EXPECT_EQ(!live.defined() || live[live.size(0) == 1 ? 0 : b][i].item<bool>(), sees) << b << " " << i;
      }
    }
  }
}

// A site of dropout whose mask counts.
class Site : public Layer {};

std::shared_ptr<Site> training_site(uint64_t seed = 3) {
  auto site = std::make_shared<Site>();
  attach(*site, std::make_shared<DropoutClock>(DropoutClock{.seed = seed}));
  return site;
}

// The scores of one head, [T, T] floats, are 64 MiB here; with the plain formula the test fails.
TEST(HeadAttention, OurKernelsHoldNoMatrixOfScores) {
  const HeadCase one = {.name = "", .B = 1, .H = 2, .Hq = 1, .Hk = 1, .Hv = 1, .T = 4096, .S = 4096, .shift = true};
  for (const HeadBackend* backend : {&kFusedBackend, &kFactorisedBackend}) {
    SCOPED_TRACE(backend->name);
    const HeadInputs in = make_inputs(one, at::kFloat);
    ASSERT_TRUE(can_run(*backend, in));
    const AllocationMeter meter;
    gradients_of(*backend, in);
    EXPECT_LT(meter.peak(), one.T * one.S * static_cast<int64_t>(sizeof(float)) / 2);
  }
}

TEST(HeadAttention, DropoutKeepsTheMeanAndFollowsItsSite) {
  const auto site = training_site();
  for (const int64_t T : {20, 260}) {  // reference and blocked
    HeadInputs in = make_inputs({.name = "", .B = 1, .T = T, .S = 400}, at::kDouble);
    in.problem.value.fill_(1);
    HeadDropout dropout = {.p = 0.25, .site = site.get()};
    EXPECT_EQ(choose_head_backend(in.problem, in.mask, dropout).name, T == 20 ? "reference" : "blocked");
    const Tensor once = attend(in.problem, in.mask, dropout);
    // A row sums to sum_j w_j m_j / (1 - p), with variance p / (1 - p) sum_j w_j^2 < p / (1 - p).
    EXPECT_NEAR(once.mean().item<double>(), 1, 5 * std::sqrt(1.0 / 3 / static_cast<double>(4 * T)));
    EXPECT_GT(once.std().item<double>(), 0.01);
    EXPECT_TRUE(at::equal(once, attend(in.problem, in.mask, dropout)));
    const auto other_site = training_site(/*seed=*/4);
    dropout.site = other_site.get();
    const Tensor other = attend(in.problem, in.mask, dropout);
    EXPECT_GT((once - other).abs().amin({0, 1, 3}).max().item<double>(), 0);
    EXPECT_FALSE(at::equal(once.slice(2, 0, 10), other.slice(2, 0, 10)));
    dropout.site = site.get();
    site->eval();
    EXPECT_TRUE(at::equal(attend(in.problem, in.mask, dropout), attend(in.problem, in.mask, {})));
    site->train();
  }
}

Tensor attend_dropped(const HeadBackend& backend, const HeadInputs& in, const HeadDropout& dropout) {
  const ScopedEnvironment forced("HEADSHARE_BACKEND", std::string(backend.name).c_str());
  return attend(in.problem, in.mask, dropout);
}

// The same mask in every backend, forward and backward.
TEST(HeadAttention, BackendsDropTheSameWeights) {
  const auto site = training_site();
  for (const bool shared : {false, true}) {
    const HeadDropout dropout = {.p = 0.3, .site = site.get(), .shared = shared};
    for (const HeadCase& one : head_cases()) {
      if (one.B == 0 || one.T == 0 || one.S == 0) continue;
      HeadInputs exact = make_inputs(one, at::kDouble);
      const std::vector<Tensor> exact_inputs = inputs_of(&exact);
      const Tensor expected = attend_dropped(kReferenceBackend, exact, dropout);
      const auto expected_gradients = torch::autograd::grad({weighed(expected)}, exact_inputs);
      for (const HeadBackend& backend : head_backends()) {
        HeadInputs in = make_inputs(one, at::kFloat);
        const std::vector<Tensor> inputs = inputs_of(&in);
        if (!backend.why_not(in.problem, in.mask, dropout).empty()) continue;
        SCOPED_TRACE(join_text(backend.name, " on ", one.name, shared ? ", shared mask" : ""));
        const Tensor actual = attend_dropped(backend, in, dropout);
        // A weight dropped wrongly moves a result by far more than rounding, even at large scores.
        const double rounding = one.scale > 1 ? 1e-3 : 2e-5;
        EXPECT_TRUE(close(actual, expected, rounding * magnitude(expected)));
        const auto actual_gradients = torch::autograd::grad({weighed(actual)}, inputs);
        for (size_t i = 0; i < inputs.size(); ++i) {
          EXPECT_TRUE(close(actual_gradients[i], expected_gradients[i], rounding * magnitude(expected_gradients[i])))
              << "input " << i;
        }
      }
    }
  }
}

TEST(HeadAttention, DropoutDiffersBetweenBlocks) {
  const auto site = training_site();
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {  // blocked, fused
    HeadInputs in = make_inputs({.name = "", .B = 1, .T = 256, .S = 64}, type);
    in.problem.query.slice(2, 128).copy_(in.problem.query.slice(2, 0, 128).clone());
    const Tensor out = attend(in.problem, in.mask, {.p = 0.5, .site = site.get()});
    EXPECT_FALSE(at::equal(out.slice(2, 0, 128), out.slice(2, 128)));
  }
}

TEST(HeadAttention, PrefersOurKernelsThenTheFusedFormAndSaysWhyNot) {
  const auto chosen = [](const HeadCase& one, at::ScalarType type) {
    const HeadInputs in = make_inputs(one, type);
    return choose_head_backend(in.problem, in.mask, {}).name;
  };
  const HeadCase one_head = {.name = "", .Hq = 1, .Hk = 1, .Hv = 1, .causal = true, .shift = true, .alibi = true};
  EXPECT_EQ(chosen({.name = "", .causal = true}, at::kFloat), "fused");
  EXPECT_EQ(chosen({.name = "", .T = 129, .Dv = 5, .causal = true, .key_bias = true, .alibi = true}, at::kFloat),
            "fused");
  EXPECT_EQ(chosen({.name = "", .T = 1, .S = 9, .key_bias = true}, at::kFloat), "decode");
  EXPECT_EQ(chosen(one_head, at::kFloat), "factorised");
  EXPECT_EQ(chosen({.name = "", .Hk = 1, .Hv = 1, .padding = Padding::kTail}, at::kDouble), "sdpa");
  EXPECT_EQ(chosen({.name = "", .Dv = 5}, at::kDouble), "reference");
  EXPECT_EQ(chosen({.name = "", .T = 129, .key_bias = true}, at::kDouble), "blocked");
  EXPECT_EQ(chosen({.name = "", .T = 129, .alibi = true}, at::kDouble), "reference");
  EXPECT_EQ(chosen({.name = "", .T = 129, .causal = true, .alibi = true}, at::kDouble), "blocked");

  const HeadInputs in =
      make_inputs({.name = "", .Hk = 1, .Dk = 6, .Dv = 5, .key_bias = true, .alibi = true}, at::kFloat);
  const auto site = training_site();
  const auto reasons = kSdpaBackend.why_not(in.problem, in.mask, {.p = 0.1, .site = site.get()});
  EXPECT_THAT(reasons, testing::ElementsAre(HasSubstr("dropout"), HasSubstr("key width 6 and value width 5"),
                                            HasSubstr("keys have 1 heads and values 4"),
                                            HasSubstr("a bias per head and key"), HasSubstr("ALiBi")));
  EXPECT_THAT(kReferenceBackend.why_not(in.problem, in.mask, {}), IsEmpty());
  const HeadInputs open = make_inputs({.name = "", .Hq = 1, .alibi = true}, at::kDouble);
  EXPECT_THAT(kFactorisedBackend.why_not(open.problem, open.mask, {.p = 0.1, .site = site.get()}),
              testing::ElementsAre(HasSubstr("not Double"), HasSubstr("not 1, 4 and 4"), HasSubstr("not causal"),
                                   HasSubstr("a shared one does")));
  EXPECT_THAT(kFusedBackend.why_not(in.problem, in.mask, {.p = 0.1, .site = site.get(), .first_query = 64}),
              testing::ElementsAre(HasSubstr("begin with query 0, not 64")));
  EXPECT_THAT(kDecodeBackend.why_not(open.problem, open.mask, {.p = 0.1, .site = site.get()}),
              testing::ElementsAre(HasSubstr("not Double"), HasSubstr("one new query, not 5"), HasSubstr("dropout")));
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HeadAttention, ForcedBackendRunsOrExplains) {
  const HeadInputs plain = make_inputs({.name = ""}, at::kFloat);
  const HeadInputs biased = make_inputs({.name = "", .key_bias = true}, at::kFloat);
  const auto chosen = [](const HeadInputs& in) { return choose_head_backend(in.problem, in.mask, {}).name; };
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "reference");
    EXPECT_EQ(chosen(plain), "reference");
  }
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "");
    EXPECT_EQ(chosen(plain), "fused");
  }
  {
    const ScopedEnvironment forced("HEADSHARE_BACKEND", "sdpa");
    EXPECT_THAT(error_of([&] { chosen(biased); }),
                testing::AllOf(HasSubstr("HEADSHARE_BACKEND=sdpa cannot run"), HasSubstr("a bias per head and key")));
  }
  const ScopedEnvironment forced("HEADSHARE_BACKEND", "referense");
  EXPECT_THAT(
      error_of([&] { chosen(plain); }),
      testing::AllOf(HasSubstr("HEADSHARE_BACKEND=referense names no backend"), HasSubstr("did you mean 'reference'"),
                     HasSubstr("decode, factorised, fused, sdpa, blocked, reference")));
}

TEST(HeadAttention, RefusesShapesThatDoNotFit) {
  const auto error_after = [](const std::function<void(HeadInputs*)>& change) {
    HeadInputs in = make_inputs({.name = ""}, at::kFloat);
    change(&in);
    return error_of([&] { attend(in.problem, in.mask, {}); });
  };
  EXPECT_THAT(
      error_after([](HeadInputs* in) { in->problem.heads = 6; }),
      HasSubstr("attention queries must be [batch, heads, length, width] with a number of heads that divides 6, "
                "not [2, 4, 5, 8]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.key = at::zeros({2, 4, 5, 7});
              }),
              HasSubstr("the same width: [2, 4, 5, 8] and [2, 4, 5, 7]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.value = at::zeros({2, 4, 6, 8});
              }),
              HasSubstr("the same length: [2, 4, 5, 8] and [2, 4, 6, 8]"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->problem.query = at::zeros({3, 4, 5, 8});
              }),
              HasSubstr("the same batch"));
  EXPECT_THAT(error_after([](HeadInputs* in) {
                in->mask.visible_keys = at::ones({2, 4}, at::kBool);
              }),
              HasSubstr("bool [batch, keys] = [2, 5], not [2, 4]"));
  EXPECT_THAT(error_after([](HeadInputs* in) { in->mask.visible_keys = at::ones({2, 5}); }), HasSubstr("must be bool"));
}

// Where why_not_sdpa has no objection libtorch must really pick a fused kernel, training or not.
TEST(HeadAttention, LibtorchFusesWhatItIsGiven) {
  for (const HeadCase& one : head_cases()) {
    if (one.B == 0 || one.T == 0 || one.S == 0) continue;
    for (const bool training : {false, true}) {
      HeadInputs in = make_inputs(one, at::kFloat);
      if (!can_run(kSdpaBackend, in)) continue;
      if (training) inputs_of(&in);
      SCOPED_TRACE(one.name);
      EXPECT_TRUE(sdpa_is_fused(in.problem, in.mask));
    }
  }
}

}  // namespace
}  // namespace headshare
