#include "headshare/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "headshare/kernels/attention_reference.h"
#include "headshare/kernels/factorised.h"
#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace {

// A problem by its sizes: edges around lanes (16), query blocks (64) and key blocks (128) by construction.
struct Case {
  std::string name;
  AttentionSizes s;
  float scale = 0.35F;
  bool causal = false, bias = false, alibi = false;
  int64_t hidden_tail = 0;  // sentence b hides its last hidden_tail + b keys
  double dropout = 0;
  bool shared = false;
  int64_t hidden_head = 0;  // every sentence hides its first hidden_head keys
  float mean = 0;           // of keys and values
};

std::vector<Case> cases() {
  return {
      {"one_of_each", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"lanes_less_one", {2, 2, 2, 2, 2, 15, 15, 7, 5}, 0.35F, true},
      {"lanes", {1, 2, 2, 2, 2, 16, 16, 16, 16}, 0.35F, true},
      {"lanes_and_one", {1, 2, 2, 2, 2, 17, 17, 8, 24}, 0.35F, true, true},
      {"query_block_and_one", {1, 2, 2, 1, 1, 65, 65, 8, 8}, 0.35F, true},
      {"key_block_and_one", {1, 2, 2, 2, 2, 40, 129, 8, 8}},
      {"several_blocks", {1, 2, 2, 2, 2, 150, 300, 12, 10}, 0.35F, true, true, true},
      {"fewer_keys", {1, 2, 2, 2, 2, 130, 30, 4, 6}, 0.35F, true},
      {"groups", {2, 6, 6, 2, 2, 33, 70, 6, 6}, 0.35F, true},
      {"shared_queries", {1, 4, 1, 1, 1, 33, 34, 6, 6}, 0.35F, true, true},
      {"wide_keys", {1, 3, 3, 1, 3, 66, 66, 40, 8}, 0.35F, true},
      {"all_counts_differ", {1, 12, 4, 6, 2, 20, 21, 4, 4}, 0.35F, false, true},
      {"padded", {3, 2, 2, 2, 2, 70, 140, 8, 8}, 0.35F, false, true, false, 5},
      {"all_hidden", {2, 2, 2, 2, 2, 20, 20, 8, 8}, 0.35F, true, false, true, 20},
      {"zero_scale", {1, 2, 2, 2, 2, 20, 20, 8, 8}, 0.0F, true},
      {"large_scores", {1, 2, 2, 2, 2, 70, 140, 8, 8}, 30.0F, true, true},
      {"hidden_blocks", {2, 2, 2, 2, 2, 64, 300, 8, 8}, 0.35F, false, true, false, 3, 0, false, 256},
      {"large_means", {1, 2, 2, 2, 2, 70, 140, 8, 8}, 0.35F, true, true, false, 0, 0, false, 0, 30},
      {"dropout", {2, 3, 3, 3, 3, 70, 140, 8, 8}, 0.35F, true, false, false, 0, 0.3},
      {"dropout_shared", {2, 3, 3, 1, 1, 70, 140, 8, 8}, 0.35F, false, true, true, 3, 0.5, true},
  };
}

// Numbers in layouts with room between rows; the room is NaN, which nobody may read into a result.
struct Poisoned {
  std::vector<float> data;
  HeadsView<float> view;

  static constexpr int64_t kRoom = 3;

  Poisoned(int64_t B, int64_t heads, int64_t rows, int64_t width, const std::vector<float>& dense) {
    const int64_t row = heads * (width + kRoom);
    data.assign(static_cast<size_t>(B * rows * row), std::nanf(""));
    view = {data.data(), rows * row, width + kRoom, row};  // [B, rows, heads, width + kRoom]
    if (dense.empty()) return;
    for (int64_t i = 0; i < B * heads * rows; ++i) {
      const int64_t b = i / (heads * rows), h = i / rows % heads, r = i % rows;
      for (int64_t d = 0; d < width; ++d) view.at(b, h)[r * row + d] = dense[static_cast<size_t>(i * width + d)];
    }
  }

  HeadsView<const float> read() const { return {view.data, view.batch, view.head, view.row}; }

  // Whether the room is as it was.
  bool untouched() const {
    bool all = true;
    for (size_t i = 0; i < data.size(); ++i) {
      const int64_t in_head = static_cast<int64_t>(i) % view.head;
      if (in_head >= view.head - kRoom) all = all && std::isnan(data[i]);
    }
    return all;
  }
};

std::vector<float> moved(std::vector<float> x, float mean) {
  for (float& one : x) one += mean;
  return x;
}

struct Problem {
  Case c;
  Poisoned query, key, value, gradient;
  std::vector<float> bias, slopes;
  std::unique_ptr<bool[]> visible;

  explicit Problem(const Case& one)
      : c(one),
        query(c.s.B, c.s.Hq, c.s.T, c.s.Dk, random_floats(c.s.B * c.s.Hq * c.s.T * c.s.Dk, 1)),
        key(c.s.B, c.s.Hk, c.s.S, c.s.Dk, moved(random_floats(c.s.B * c.s.Hk * c.s.S * c.s.Dk, 2), c.mean)),
        value(c.s.B, c.s.Hv, c.s.S, c.s.Dv, moved(random_floats(c.s.B * c.s.Hv * c.s.S * c.s.Dv, 3), c.mean)),
        gradient(c.s.B, c.s.H, c.s.T, c.s.Dv, random_floats(c.s.B * c.s.H * c.s.T * c.s.Dv, 4)) {
    if (c.bias) bias = random_floats(c.s.B * c.s.H * c.s.S, 5);
    for (int64_t h = 0; c.alibi && h < c.s.H; ++h) slopes.push_back(0.5F / static_cast<float>(h + 1));
    if (c.hidden_tail == 0 && c.hidden_head == 0) return;
    visible = std::make_unique<bool[]>(static_cast<size_t>(c.s.B * c.s.S));
    for (int64_t i = 0; i < c.s.B * c.s.S; ++i) {
      const int64_t b = i / c.s.S, key = i % c.s.S;
      visible[i] = key >= c.hidden_head && key < c.s.S - c.hidden_tail - (c.hidden_tail > 0 ? b : 0);
    }
  }

  AttentionRule rule() const {
    return {c.scale,
            c.causal,
            visible.get(),
            bias.empty() ? nullptr : bias.data(),
            slopes.empty() ? nullptr : slopes.data(),
            c.dropout > 0 ? dropout_mask(c.dropout, 9, c.shared) : DropoutMask{}};
  }
  AttentionInputs<float> inputs() const { return {query.read(), key.read(), value.read()}; }
};

double largest_of(const std::vector<double>& x) {
  double largest = 1;
  for (const double one : x) largest = std::max(largest, std::abs(one));
  return largest;
}

// Values, dense over [B, heads, rows, width], and how far from them a result may be: twice as far as the same formula
// computed plainly in float, and a few roundings.
struct Expected {
  int64_t B, heads, rows, width;
  std::vector<double> values;
  double tolerance;

  Expected(int64_t B, int64_t heads, int64_t rows, int64_t width, std::vector<double> exact,
           const std::vector<float>& plain)
      : B(B), heads(heads), rows(rows), width(width), values(std::move(exact)) {
    constexpr double kRoundings = 8;
    double error = 0;
    for (size_t i = 0; i < values.size(); ++i) error = std::max(error, std::abs(plain[i] - values[i]));
    tolerance = 2 * error + kRoundings * std::numeric_limits<float>::epsilon() * largest_of(values);
  }

  // The largest distance; NaN is far from everything.
  double gap(const HeadsView<float>& actual) const {
    double largest = 0;
    for (int64_t i = 0; i < B * heads * rows; ++i) {
      const float* row = actual.at(i / (heads * rows), i / rows % heads) + i % rows * actual.row;
      for (int64_t d = 0; d < width; ++d) {
        const double difference = std::abs(row[d] - values[static_cast<size_t>(i * width + d)]);
        if (!(difference <= largest)) largest = std::isnan(difference) ? 1e30 : difference;
      }
    }
    return largest;
  }
};

Expected expected_out(const Problem& p) {
  const AttentionSizes& s = p.c.s;
  return {s.B,
          s.H,
          s.T,
          s.Dv,
          reference_forward<double>(s, p.rule(), p.inputs()).out,
          reference_forward<float>(s, p.rule(), p.inputs()).out};
}

struct ExpectedGradients {
  Expected query, key, value, key_bias;
};

ExpectedGradients expected_gradients(const Problem& p) {
  const AttentionSizes& s = p.c.s;
  const auto exact = reference_backward<double>(s, p.rule(), p.inputs(), p.gradient.read());
  const auto plain = reference_backward<float>(s, p.rule(), p.inputs(), p.gradient.read());
  return {{s.B, s.Hq, s.T, s.Dk, exact.query, plain.query},
          {s.B, s.Hk, s.S, s.Dk, exact.key, plain.key},
          {s.B, s.Hv, s.S, s.Dv, exact.value, plain.value},
          {s.B, s.H, s.S, 1, exact.key_bias, plain.key_bias}};
}

// The sum of the outputs' entries times p.gradient, by the reference.
double weighted_sum(const Problem& p) {
  const AttentionSizes& s = p.c.s;
  const std::vector<double> out = reference_forward<double>(s, p.rule(), p.inputs()).out;
  double sum = 0;
  for (int64_t i = 0; i < s.B * s.H * s.T * s.Dv; ++i) {
    const int64_t row = i / s.Dv;
    const float* slopes = p.gradient.view.at(row / (s.H * s.T), row / s.T % s.H) + row % s.T * p.gradient.view.row;
    sum += out[static_cast<size_t>(i)] * slopes[i % s.Dv];
  }
  return sum;
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  constexpr float kStep = 0x1p-8F;
  for (const Case& one : cases()) {
    if (one.s.T > 70 || one.scale > 1 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    Problem p(one);
    const auto gradients = reference_backward<double>(one.s, p.rule(), p.inputs(), p.gradient.read());
    const auto difference = [&](float* x) {
      const float before = *x;
      *x = before + kStep;
      const double above = weighted_sum(p);
      *x = before - kStep;
      const double below = weighted_sum(p);
      *x = before;
      return (above - below) / (2 * kStep);
    };
    const auto check = [&](Poisoned& input, int64_t heads, int64_t rows, int64_t width,
                           const std::vector<double>& gradient) {
      const auto count = static_cast<int64_t>(gradient.size());
      for (int64_t i = 0; i < count; i += count / 5 + 1) {
        const int64_t row = i / width;
        float* x = input.view.at(row / (heads * rows), row / rows % heads) + row % rows * input.view.row + i % width;
        EXPECT_NEAR(difference(x), gradient[static_cast<size_t>(i)], 1e-3) << i;
      }
    };
    check(p.query, one.s.Hq, one.s.T, one.s.Dk, gradients.query);
    check(p.key, one.s.Hk, one.s.S, one.s.Dk, gradients.key);
    check(p.value, one.s.Hv, one.s.S, one.s.Dv, gradients.value);
    for (size_t i = 0; i < p.bias.size(); i += p.bias.size() / 5 + 1) {
      EXPECT_NEAR(difference(&p.bias[i]), gradients.key_bias[i], 1e-3) << i;
    }
  }
}

// The results of the kernels of attention.h, forward and backward.
struct Results {
  Poisoned out, query, key, value;
  std::vector<float> lse, bias;

  explicit Results(const AttentionSizes& s)
      : out(s.B, s.H, s.T, s.Dv, {}),
        query(s.B, s.Hq, s.T, s.Dk, {}),
        key(s.B, s.Hk, s.S, s.Dk, {}),
        value(s.B, s.Hv, s.S, s.Dv, {}),
        lse(static_cast<size_t>(s.B * s.H * s.T + kFence), std::nanf("")),
        bias(static_cast<size_t>(s.B * s.H * s.S + kFence), std::nanf("")) {}

  static constexpr int64_t kFence = 32;

  AttentionGradients<float> gradients() { return {query.view, key.view, value.view, bias.data()}; }
  HeadsView<float> bias_view(const AttentionSizes& s) { return {bias.data(), s.H * s.S, s.S, 1}; }

  // Whether nothing was written but results.
  bool fences_stand() const {
    const auto nan = [](float x) { return std::isnan(x); };
    return out.untouched() && query.untouched() && key.untouched() && value.untouched() &&
           std::all_of(lse.end() - kFence, lse.end(), nan) && std::all_of(bias.end() - kFence, bias.end(), nan);
  }
};

void expect_results(const Problem& p, Results& actual, double times = 1) {
  const auto expect = [&](const Expected& expected, const HeadsView<float>& found, const char* what) {
    EXPECT_LE(expected.gap(found), times * expected.tolerance) << what;
  };
  const ExpectedGradients gradients = expected_gradients(p);
  expect(expected_out(p), actual.out.view, "out");
  expect(gradients.query, actual.query.view, "query");
  expect(gradients.key, actual.key.view, "key");
  expect(gradients.value, actual.value.view, "value");
  expect(gradients.key_bias, actual.bias_view(p.c.s), "key bias");
  EXPECT_TRUE(actual.fences_stand());
}

Results run(const Problem& p, const Parallel& parallel) {
  const Machine machine{&plain_gemm(), parallel};
  Results results(p.c.s);
  attention_forward<float>(p.c.s, p.rule(), p.inputs(), results.out.view, results.lse.data(), machine);
  attention_backward<float>(p.c.s, p.rule(), p.inputs(), results.out.read(), results.lse.data(), p.gradient.read(),
                            results.gradients(), machine);
  return results;
}

class AttentionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

TEST_P(AttentionTest, EqualsTheReferenceForwardAndBackward) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    Results results = run(problem, serial());
    expect_results(problem, results);
  }
}

// Whether heads are split, shared gradients added up or queries divided depends on the number of threads.
TEST_P(AttentionTest, EqualsTheReferenceWithThreads) {
  for (const Case& one : cases()) {
    for (const int64_t threads : {2, 7}) {
      SCOPED_TRACE(one.name);
      const Problem problem(one);
      Results results = run(problem, std_threads(threads));
      expect_results(problem, results);
    }
  }
}

// Gaps between rows are NaN and unequal to themselves: compared by value where there are values.
bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same(const Results& a, const Results& b) {
  EXPECT_TRUE(equal(a.out.data, b.out.data));
  EXPECT_TRUE(equal(a.query.data, b.query.data));
  EXPECT_TRUE(equal(a.key.data, b.key.data));
  EXPECT_TRUE(equal(a.value.data, b.value.data));
  EXPECT_TRUE(equal(a.bias, b.bias));
}

// Whichever thread takes which part.
TEST(Attention, RepeatsToTheLastBitForANumberOfThreads) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    expect_same(run(problem, std_threads(3)), run(problem, eager_threads(3)));
  }
}

TEST_P(AttentionTest, DecodingEqualsTheReference) {
  for (Case one : cases()) {
    if (one.dropout > 0) continue;
    one.s.T = 1;
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    const Expected expected = expected_out(problem);
    for (const int64_t threads : {1, 5}) {
      Poisoned out(one.s.B, one.s.H, 1, one.s.Dv, {});
      attention_decode<float>(one.s, problem.rule(), problem.inputs(), out.view, {&plain_gemm(), std_threads(threads)});
      EXPECT_LE(expected.gap(out.view), expected.tolerance);
    }
  }
}

// Inputs rounded to bf16 and the reference of those: what remains is the rounding of weights and results.
TEST_P(AttentionTest, Bf16EqualsTheReferenceOfItsInputs) {
  for (const Case& one : cases()) {
    if (one.s.Dk % 2 != 0 || one.s.Dv % 2 != 0 || one.scale > 1 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    Problem problem(one);
    const AttentionSizes& s = one.s;
    const auto narrowed = [](Poisoned* x) {
      std::vector<Bf16> narrow(x->data.size());
      for (size_t i = 0; i < narrow.size(); ++i) {
        narrow[i] = to_bf16(x->data[i]);
        x->data[i] = to_float(narrow[i]);
      }
      return narrow;
    };
    const auto seen = [](const std::vector<Bf16>& data, const Poisoned& like) {
      return HeadsView<const Bf16>{data.data(), like.view.batch, like.view.head, like.view.row};
    };
    const auto query = narrowed(&problem.query), key = narrowed(&problem.key), value = narrowed(&problem.value);
    const auto gradient = narrowed(&problem.gradient);
    const AttentionInputs<Bf16> in{seen(query, problem.query), seen(key, problem.key), seen(value, problem.value)};
    Results like(s);
    const auto room = [](const Poisoned& x) { return std::vector<Bf16>(x.data.size()); };
    auto out = room(like.out), dq = room(like.query), dk = room(like.key), dv = room(like.value);
    const auto written = [](std::vector<Bf16>& data, const Poisoned& x) {
      return HeadsView<Bf16>{data.data(), x.view.batch, x.view.head, x.view.row};
    };
    const Machine machine{&plain_gemm(), std_threads(2)};
    attention_forward<Bf16>(s, problem.rule(), in, written(out, like.out), like.lse.data(), machine);
    attention_backward<Bf16>(
        s, problem.rule(), in, seen(out, like.out), like.lse.data(), seen(gradient, problem.gradient),
        {written(dq, like.query), written(dk, like.key), written(dv, like.value), like.bias.data()}, machine);
    const Expected forward = expected_out(problem);
    const ExpectedGradients backward = expected_gradients(problem);
    const auto close = [&](const std::vector<Bf16>& actual, Poisoned& as, const Expected& expected, const char* what) {
      for (size_t i = 0; i < actual.size(); ++i) as.data[i] = to_float(actual[i]);
      EXPECT_LE(expected.gap(as.view), 0x1p-6 * largest_of(expected.values)) << what;
    };
    close(out, like.out, forward, "out");
    close(dq, like.query, backward.query, "query");
    close(dk, like.key, backward.key, "key");
    close(dv, like.value, backward.value, "value");
  }
}

// The same for the factorised form.
template <typename Product = float>
Results run_factorised(const Problem& p, const Parallel& parallel, int64_t* by_head) {
  const AttentionSizes& a = p.c.s;
  const FactorisedSizes s{a.B, a.H, a.T, a.S, a.Dk, a.Dv};
  const Machine machine{&plain_gemm(), parallel};
  Results results(a);
  std::vector<float> m(static_cast<size_t>(s.B * s.T));
  const auto flags = std::make_unique<bool[]>(static_cast<size_t>(s.B * s.H * s.blocks()));
  const FactorisedState state{results.lse.data(), m.data(), flags.get()};
  factorised_forward<Product>(s, p.rule(), p.inputs(), results.out.view, state, machine);
  factorised_backward<Product>(s, p.rule(), p.inputs(), results.out.read(), state, p.gradient.read(),
                               results.gradients(), machine);
  *by_head = 0;
  for (int64_t i = 0; i < s.B * s.H * s.blocks(); ++i) *by_head += flags[i] ? 1 : 0;
  return results;
}

std::vector<Case> factorised_cases() {
  const auto one_head = [](int64_t B, int64_t H, int64_t T, int64_t S, int64_t Dk, int64_t Dv) {
    return AttentionSizes{B, H, 1, 1, 1, T, S, Dk, Dv};
  };
  return {
      {"one_of_each", one_head(1, 1, 1, 1, 1, 1), 0.35F, false, true},
      {"open", one_head(2, 5, 65, 129, 8, 8), 0.35F, false, true},
      {"open_odd", one_head(1, 17, 15, 31, 5, 7), 0.35F, false, true},
      {"causal", one_head(1, 3, 130, 130, 8, 8), 0.35F, true, true},
      {"causal_more_keys", one_head(1, 3, 70, 201, 8, 8), 0.35F, true, true},
      {"causal_fewer_keys", one_head(1, 3, 150, 67, 8, 8), 0.35F, true, true},
      {"causal_alibi", one_head(1, 3, 200, 230, 8, 8), 0.35F, true, true, true},
      {"padded", one_head(3, 3, 70, 140, 8, 8), 0.35F, false, true, false, 9},
      {"padded_causal", one_head(2, 3, 140, 140, 8, 8), 0.35F, true, true, true, 70},
      {"all_hidden", one_head(2, 3, 20, 20, 8, 8), 0.35F, true, true, false, 20},
      {"hidden_blocks", one_head(2, 3, 70, 300, 8, 8), 0.35F, false, true, false, 3, 0, false, 256},
      {"large_means", one_head(1, 3, 70, 140, 8, 8), 0.35F, true, true, false, 0, 0, false, 0, 30},
      {"dropout", one_head(2, 3, 70, 140, 8, 8), 0.35F, true, true, false, 0, 0.3, true},
  };
}

TEST_P(AttentionTest, FactorisedEqualsTheReference) {
  for (const Case& one : factorised_cases()) {
    for (const int64_t threads : {1, 3}) {
      SCOPED_TRACE(one.name);
      const Problem problem(one);
      int64_t by_head = 0;
      Results results = run_factorised(problem, std_threads(threads), &by_head);
      expect_results(problem, results);
      EXPECT_EQ(by_head, 0);
    }
  }
}

TEST(Attention, FactorisedRepeatsToTheLastBitForANumberOfThreads) {
  for (const Case& one : factorised_cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem(one);
    int64_t by_head = 0;
    const Results once = run_factorised(problem, std_threads(3), &by_head);
    expect_same(once, run_factorised(problem, eager_threads(3), &by_head));
  }
}

// A head whose biases are far below zero, behind a block of keys that nobody sees: measured from zero, that block's
// share would overflow.
TEST_P(AttentionTest, FactorisedSkipsHiddenBlocksBeforeFarBiases) {
  Case one{"far_below", {1, 2, 1, 1, 1, 64, 256, 8, 8}, 0.35F, false, true};
  one.hidden_head = 128;
  Problem p(one);
  for (int64_t j = 0; j < 256; ++j) p.bias[static_cast<size_t>(256 + j)] -= 100 / one.scale;
  int64_t by_head = 0;
  Results results = run_factorised(p, serial(), &by_head);
  EXPECT_EQ(by_head, 0);
  expect_results(p, results);
}

TEST_P(AttentionTest, FactorisedWithProductsInBf16IsAsNearAsTheirRounding) {
  for (const Case& one : factorised_cases()) {
    if (one.s.Dv % 2 != 0 || one.mean > 0) continue;
    SCOPED_TRACE(one.name);
    const Problem p(one);
    int64_t by_head = 0;
    Results results = run_factorised<Bf16>(p, std_threads(2), &by_head);
    const auto close = [](HeadsView<float> actual, const Expected& expected, const char* what) {
      EXPECT_LE(expected.gap(actual), 0x1p-6 * largest_of(expected.values)) << what;
    };
    const ExpectedGradients gradients = expected_gradients(p);
    close(results.out.view, expected_out(p), "out");
    close(results.query.view, gradients.query, "query");
    close(results.key.view, gradients.key, "key");
    close(results.value.view, gradients.value, "value");
    close(results.bias_view(one.s), gradients.key_bias, "key bias");
  }
}

// Ranges of q.k and of the biases up to 200 nats, in opposite orders: P0 and w are both tiny at the key that
// counts, and their product loses it unless the head is done on its own.
Problem far_apart(bool causal, double dropout) {
  Case one{"far_apart", {1, 3, 1, 1, 1, 70, 140, 2, 4}, 1.0F, causal, true, false, 0, dropout, true};
  Problem p(one);
  for (int64_t i = 0; i < 70; ++i) {
    p.query.view.at(0, 0)[i * p.query.view.row] = 1;
    p.query.view.at(0, 0)[i * p.query.view.row + 1] = 0;
  }
  for (int64_t j = 0; j < 140; ++j) {
    const auto t = static_cast<float>(j) / 139;
    p.key.view.at(0, 0)[j * p.key.view.row] = -200 * t;  // q.k falls from 0 to -200
    for (int64_t h = 0; h < 3; ++h) p.bias[static_cast<size_t>(h * 140 + j)] = 199.0F * t * static_cast<float>(h) / 2;
  }
  return p;
}

TEST_P(AttentionTest, FactorisedSurvivesRangesThatLieFarApart) {
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.4}) {
      const Problem problem = far_apart(causal, dropout);
      int64_t by_head = 0;
      Results results = run_factorised(problem, std_threads(2), &by_head);
      EXPECT_GT(by_head, 0);  // some heads fall back,
      EXPECT_LT(by_head, 6);  // not those whose biases are small
      // Exponents of 200 nats become powers of two: one more rounding of each, two without fused multiply-add.
      expect_results(problem, results, /*times=*/8);
    }
  }
}

// kernels.md: one key at (0, -80), 2047 at (-88, 0). Their addends are flushed to zero one by one although together
// they weigh 0.41; the denominator alone does not show it.
TEST_P(AttentionTest, FactorisedSeesAddendsThatWereFlushed) {
  Case one{"flushed", {1, 2, 1, 1, 1, 1, 2048, 1, 1}, 1.0F, false, true};
  Problem p(one);
  p.query.view.at(0, 0)[0] = 1;
  for (int64_t j = 0; j < 2048; ++j) {
    p.key.view.at(0, 0)[j * p.key.view.row] = j == 7 ? 0 : -88;
    p.value.view.at(0, 0)[j * p.value.view.row] = j == 7 ? 1 : 0;
    p.bias[static_cast<size_t>(j)] = 0;
    p.bias[static_cast<size_t>(2048 + j)] = j == 7 ? -80 : 0;
  }
  int64_t by_head = 0;
  const Results results = run_factorised(p, serial(), &by_head);
  EXPECT_EQ(by_head, 1);
  const double others = 2047 * std::exp(-8.0);
  EXPECT_NEAR(results.out.view.at(0, 1)[0], 1 / (1 + others), 1e-5);
  EXPECT_NEAR(results.out.view.at(0, 0)[0], 1, 1e-6);
}

// One entry far above all others takes the whole softmax.
TEST_P(AttentionTest, OneHugeScoreTakesAll) {
  Case one{"huge", {1, 2, 1, 1, 1, 5, 300, 2, 3}, 1.0F, false, true};
  Problem p(one);
  p.key.view.at(0, 0)[77 * p.key.view.row] = 1e6F;
  for (int64_t i = 0; i < 5; ++i) p.query.view.at(0, 0)[i * p.query.view.row] = 1;
  int64_t by_head = 0;
  const Results factorised = run_factorised(p, serial(), &by_head);
  const Results blocked = run(p, serial());
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t d = 0; d < 3; ++d) {
      const float expected = p.value.view.at(0, 0)[77 * p.value.view.row + d];
      EXPECT_FLOAT_EQ(factorised.out.view.at(0, i % 2)[i / 2 * factorised.out.view.row + d], expected);
      EXPECT_EQ(blocked.out.view.at(0, i % 2)[i / 2 * blocked.out.view.row + d], expected);
    }
  }
}

TEST(Attention, NanInTheInputShows) {
  Case one{"nan", {1, 1, 1, 1, 1, 20, 20, 4, 4}};
  Problem p(one);
  p.query.view.at(0, 0)[3 * p.query.view.row] = std::nanf("");
  const Results results = run(p, serial());
  EXPECT_TRUE(std::isnan(results.out.view.at(0, 0)[3 * results.out.view.row]));
  EXPECT_FALSE(std::isnan(results.out.view.at(0, 0)[4 * results.out.view.row]));
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AttentionTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
