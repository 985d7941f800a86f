// Makes problems of attention for tests of its kernels, and what they are compared with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_reference.h"
#include "headshare/kernels/testing.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {

// This is a problem by what it is made of.
struct Case {
  std::string name;
  AttentionSizes sizes;
  float scale = 0.35F;
  bool causal = false, key_bias = false, alibi = false, sinks = false;
  int64_t hidden_head = 0;  // every sentence hides its first hidden_head keys
  int64_t hidden_tail = 0;  // sentence b hides its last hidden_tail + b keys
  float mean = 0;           // of keys and values
  double dropout = 0;
  bool shared_mask = false;  // one mask of dropout for all heads
};

// Returns `sizes` with queries, keys and values of its own for each of the H heads.
constexpr AttentionSizes own_heads(AttentionSizes sizes) {
  sizes.Hq = sizes.Hk = sizes.Hv = sizes.H;
  return sizes;
}

// The cases lie at the edges around lanes (16), query blocks (64) and key blocks (128) by construction.
inline std::vector<Case> cases() {
  return {
      {.name = "one_of_each", .sizes = {}},
      {.name = "lanes_less_one",
       .sizes = own_heads({.B = 2, .H = 2, .T = 15, .S = 15, .Dk = 7, .Dv = 5}),
       .causal = true},
      {.name = "lanes", .sizes = own_heads({.H = 2, .T = 16, .S = 16, .Dk = 16, .Dv = 16}), .causal = true},
      {.name = "lanes_and_one",
       .sizes = own_heads({.H = 2, .T = 17, .S = 17, .Dk = 8, .Dv = 24}),
       .causal = true,
       .key_bias = true},
      {.name = "query_block_and_one", .sizes = {.H = 2, .Hq = 2, .T = 65, .S = 65, .Dk = 8, .Dv = 8}, .causal = true},
      {.name = "key_block_and_one", .sizes = own_heads({.H = 2, .T = 40, .S = 129, .Dk = 8, .Dv = 8})},
      {.name = "several_blocks",
       .sizes = own_heads({.H = 2, .T = 150, .S = 300, .Dk = 12, .Dv = 10}),
       .causal = true,
       .key_bias = true,
       .alibi = true},
      {.name = "fewer_keys", .sizes = own_heads({.H = 2, .T = 130, .S = 30, .Dk = 4, .Dv = 6}), .causal = true},
      {.name = "groups",
       .sizes = {.B = 2, .H = 6, .Hq = 6, .Hk = 2, .Hv = 2, .T = 33, .S = 70, .Dk = 6, .Dv = 6},
       .causal = true},
      {.name = "shared_queries",
       .sizes = {.H = 4, .T = 33, .S = 34, .Dk = 6, .Dv = 6},
       .causal = true,
       .key_bias = true},
      {.name = "wide_keys", .sizes = {.H = 3, .Hq = 3, .Hv = 3, .T = 66, .S = 66, .Dk = 40, .Dv = 8}, .causal = true},
      {.name = "all_counts_differ",
       .sizes = {.H = 12, .Hq = 4, .Hk = 6, .Hv = 2, .T = 20, .S = 21, .Dk = 4, .Dv = 4},
       .key_bias = true},
      {.name = "padded",
       .sizes = own_heads({.B = 3, .H = 2, .T = 70, .S = 140, .Dk = 8, .Dv = 8}),
       .key_bias = true,
       .hidden_tail = 5},
      {.name = "all_hidden",
       .sizes = own_heads({.B = 2, .H = 2, .T = 20, .S = 20, .Dk = 8, .Dv = 8}),
       .causal = true,
       .alibi = true,
       .hidden_tail = 20},
      {.name = "zero_scale",
       .sizes = own_heads({.H = 2, .T = 20, .S = 20, .Dk = 8, .Dv = 8}),
       .scale = 0,
       .causal = true},
      {.name = "large_scores",
       .sizes = own_heads({.H = 2, .T = 70, .S = 140, .Dk = 8, .Dv = 8}),
       .scale = 30,
       .causal = true,
       .key_bias = true},
      {.name = "hidden_blocks",
       .sizes = own_heads({.B = 2, .H = 2, .T = 64, .S = 300, .Dk = 8, .Dv = 8}),
       .key_bias = true,
       .hidden_head = 256,
       .hidden_tail = 3},
      {.name = "large_means",
       .sizes = own_heads({.H = 2, .T = 70, .S = 140, .Dk = 8, .Dv = 8}),
       .causal = true,
       .key_bias = true,
       .mean = 30},
      {.name = "sinks",
       .sizes = {.B = 2, .H = 6, .Hq = 6, .Hk = 2, .Hv = 2, .T = 70, .S = 140, .Dk = 8, .Dv = 8},
       .causal = true,
       .key_bias = true,
       .sinks = true,
       .hidden_head = 75},
      {.name = "large_sinks",
       .sizes = own_heads({.H = 3, .T = 20, .S = 30, .Dk = 8, .Dv = 8}),
       .scale = 3,
       .sinks = true,
       .dropout = 0.3},
      {.name = "dropout",
       .sizes = own_heads({.B = 2, .H = 3, .T = 70, .S = 140, .Dk = 8, .Dv = 8}),
       .causal = true,
       .dropout = 0.3},
      {.name = "dropout_shared",
       .sizes = {.B = 2, .H = 3, .Hq = 3, .T = 70, .S = 140, .Dk = 8, .Dv = 8},
       .key_bias = true,
       .alibi = true,
       .hidden_tail = 3,
       .dropout = 0.5,
       .shared_mask = true},
  };
}

// These numbers have layouts with room between rows; the room is NaN, which nobody may read into a result.
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

  // Tells whether the room is as it was.
  bool untouched() const {
    bool all = true;
    for (size_t i = 0; i < data.size(); ++i) {
      const int64_t in_head = static_cast<int64_t>(i) % view.head;
      if (in_head >= view.head - kRoom) all = all && std::isnan(data[i]);
    }
    return all;
  }
};

inline std::vector<float> moved(std::vector<float> x, float mean) {
  for (float& one : x) one += mean;
  return x;
}

struct Problem {
  Case c;
  Poisoned query, key, value, gradient;
  std::vector<float> bias, slopes, sinks;
  std::unique_ptr<bool[]> visible;

  explicit Problem(const Case& one) : Problem(one, one.sizes) {}

  AttentionRule rule() const {
    return {.scale = c.scale,
            .causal = c.causal,
            .visible_keys = visible.get(),
            .key_bias = bias.empty() ? nullptr : bias.data(),
            .alibi_slopes = slopes.empty() ? nullptr : slopes.data(),
            .sinks = sinks.empty() ? nullptr : sinks.data(),
            .dropout = c.dropout > 0 ? dropout_mask(c.dropout, /*key=*/9, c.shared_mask) : DropoutMask{}};
  }
  AttentionInputs<float> inputs() const { return {query.read(), key.read(), value.read()}; }

 private:
  Problem(const Case& one, const AttentionSizes& s)
      : c(one),
        query(s.B, s.Hq, s.T, s.Dk, random_floats(s.B * s.Hq * s.T * s.Dk, 1)),
        key(s.B, s.Hk, s.S, s.Dk, moved(random_floats(s.B * s.Hk * s.S * s.Dk, 2), c.mean)),
        value(s.B, s.Hv, s.S, s.Dv, moved(random_floats(s.B * s.Hv * s.S * s.Dv, 3), c.mean)),
        gradient(s.B, s.H, s.T, s.Dv, random_floats(s.B * s.H * s.T * s.Dv, 4)) {
    if (c.key_bias) bias = random_floats(s.B * s.H * s.S, 5);
    for (int64_t h = 0; c.sinks && h < s.H; ++h) sinks.push_back(c.scale * static_cast<float>(2 * h - 3));
    for (int64_t h = 0; c.alibi && h < s.H; ++h) slopes.push_back(0.5F / static_cast<float>(h + 1));
    if (c.hidden_tail == 0 && c.hidden_head == 0) return;
    visible = std::make_unique<bool[]>(static_cast<size_t>(s.B * s.S));
    for (int64_t i = 0; i < s.B * s.S; ++i) {
      const int64_t b = i / s.S, key = i % s.S;
      visible[i] = key >= c.hidden_head && key < s.S - c.hidden_tail - (c.hidden_tail > 0 ? b : 0);
    }
  }
};

inline double largest_of(const std::vector<double>& x) {
  double largest = 1;
  for (const double one : x) largest = std::max(largest, std::abs(one));
  return largest;
}

// Holds the expected values, dense over [B, heads, rows, width], and how far from them a result may be: twice as far as
// the same formula computed plainly in float, its matrices kept as the kernel's are, and a few roundings; in bf16 never
// more than 2^-6.
struct Expected {
  int64_t B, heads, rows, width;
  std::vector<double> values;
  double tolerance;

  Expected(int64_t B, int64_t heads, int64_t rows, int64_t width, std::vector<double> exact,
           const std::vector<float>& plain, Kept kept)
      : B(B), heads(heads), rows(rows), width(width), values(std::move(exact)) {
    const bool bf16 = kept == Kept::kBf16;
    const double roundings = bf16 ? 0x1p-8 : 8 * std::numeric_limits<float>::epsilon();
    double error = 0;
    for (size_t i = 0; i < values.size(); ++i) error = std::max(error, std::abs(plain[i] - values[i]));
    tolerance = 2 * error + roundings * largest_of(values);
    if (bf16) tolerance = std::min(tolerance, 0x1p-6 * largest_of(values));
  }

  // Returns the largest distance; NaN is far from everything.
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

inline Expected expected_out(const Problem& p, Kept kept = Kept::kAsComputed) {
  const AttentionSizes& s = p.c.sizes;
  return {s.B,
          s.H,
          s.T,
          s.Dv,
          reference_forward<double>(s, p.rule(), p.inputs()).out,
          reference_forward<float>(s, p.rule(), p.inputs(), kept).out,
          kept};
}

struct ExpectedGradients {
  Expected query, key, value, key_bias;
};

inline ExpectedGradients expected_gradients(const Problem& p, Kept kept = Kept::kAsComputed) {
  const AttentionSizes& s = p.c.sizes;
  const auto exact = reference_backward<double>(s, p.rule(), p.inputs(), p.gradient.read());
  const auto plain = reference_backward<float>(s, p.rule(), p.inputs(), p.gradient.read(), kept);
  return {{s.B, s.Hq, s.T, s.Dk, exact.query, plain.query, kept},
          {s.B, s.Hk, s.S, s.Dk, exact.key, plain.key, kept},
          {s.B, s.Hv, s.S, s.Dv, exact.value, plain.value, kept},
          {s.B, s.H, s.S, 1, exact.key_bias, plain.key_bias, kept}};
}

// These are the results of the kernels of attention.h, forward and backward.
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

  // Tells whether nothing was written but results.
  bool fences_stand() const {
    const auto nan = [](float x) { return std::isnan(x); };
    return out.untouched() && query.untouched() && key.untouched() && value.untouched() &&
           std::all_of(lse.end() - kFence, lse.end(), nan) && std::all_of(bias.end() - kFence, bias.end(), nan);
  }
};

inline void expect_results(const Problem& p, Results& actual, double times = 1, Kept kept = Kept::kAsComputed) {
  const auto expect = [&](const Expected& expected, const HeadsView<float>& found, const char* what) {
    EXPECT_LE(expected.gap(found), times * expected.tolerance) << what;
  };
  const ExpectedGradients gradients = expected_gradients(p, kept);
  expect(expected_out(p, kept), actual.out.view, "out");
  expect(gradients.query, actual.query.view, "query");
  expect(gradients.key, actual.key.view, "key");
  expect(gradients.value, actual.value.view, "value");
  expect(gradients.key_bias, actual.bias_view(p.c.sizes), "key bias");
  EXPECT_TRUE(actual.fences_stand());
}

inline Machine machine_with(const Parallel& parallel) { return {&plain_gemm(), parallel, allocate_poisoned}; }

inline Results run(const Problem& p, const Parallel& parallel) {
  const Machine machine = machine_with(parallel);
  Results results(p.c.sizes);
  attention_forward<float>(p.c.sizes, p.rule(), p.inputs(), results.out.view, results.lse.data(), machine);
  attention_backward<float>(p.c.sizes, p.rule(), p.inputs(), results.out.read(), results.lse.data(), p.gradient.read(),
                            results.gradients(), machine);
  return results;
}

// These tests run for each instruction set that this CPU has.
class EveryInstructionSet : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_tiles_target(GetParam()); }
  void TearDown() override { force_tiles_target(""); }
};

// The bits are compared, because gaps between rows are NaN and unequal to themselves.
inline bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline void expect_same(const Results& a, const Results& b) {
  EXPECT_TRUE(equal(a.out.data, b.out.data));
  EXPECT_TRUE(equal(a.query.data, b.query.data));
  EXPECT_TRUE(equal(a.key.data, b.key.data));
  EXPECT_TRUE(equal(a.value.data, b.value.data));
  EXPECT_TRUE(equal(a.bias, b.bias));
}

// Returns `x` rounded to bf16; `x` becomes what the rounded values are worth.
inline std::vector<Bf16> narrowed(Poisoned* x) {
  std::vector<Bf16> narrow(x->data.size());
  for (size_t i = 0; i < narrow.size(); ++i) {
    narrow[i] = to_bf16(x->data[i]);
    x->data[i] = to_float(narrow[i]);
  }
  return narrow;
}

inline HeadsView<const Bf16> seen(const std::vector<Bf16>& data, const Poisoned& like) {
  return {data.data(), like.view.batch, like.view.head, like.view.row};
}

inline HeadsView<Bf16> written(std::vector<Bf16>& data, const Poisoned& like) {
  return {data.data(), like.view.batch, like.view.head, like.view.row};
}

// Returns room for results: NaN as `like` is.
inline std::vector<Bf16> room(const Poisoned& like) {
  return std::vector<Bf16>(like.data.size(), to_bf16(std::nanf("")));
}

// Tells whether a case fits bf16: even widths, and values whose rounding leaves something to compare.
inline bool suits_bf16(const Case& one) {
  return one.sizes.Dk % 2 == 0 && one.sizes.Dv % 2 == 0 && one.scale <= 1 && one.mean == 0;
}

// Writes `narrow` into `as`, whose views tell where it lies.
inline void widen(const std::vector<Bf16>& narrow, Poisoned* as) {
  for (size_t i = 0; i < narrow.size(); ++i) as->data[i] = to_float(narrow[i]);
}

// This problem has one head of 20 queries and keys; query 3 has a NaN.
inline Problem problem_with_nan() {
  Problem p({.name = "nan", .sizes = {.T = 20, .S = 20, .Dk = 4, .Dv = 4}, .key_bias = true});
  p.query.view.at(0, 0)[3 * p.query.view.row] = std::nanf("");
  return p;
}

inline void expect_nan_at_its_query(const Results& results) {
  EXPECT_TRUE(std::isnan(results.out.view.at(0, 0)[3 * results.out.view.row]));
  EXPECT_FALSE(std::isnan(results.out.view.at(0, 0)[4 * results.out.view.row]));
  EXPECT_TRUE(std::isnan(results.query.view.at(0, 0)[3 * results.query.view.row]));
  EXPECT_FALSE(std::isnan(results.query.view.at(0, 0)[4 * results.query.view.row]));
  EXPECT_TRUE(std::isnan(results.value.view.at(0, 0)[0]));
}

}  // namespace headshare::kernels
