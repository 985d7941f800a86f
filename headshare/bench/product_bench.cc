#include "headshare/bench/product_bench.h"

#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include "headshare/base/error.h"
#include "headshare/ops/cross_entropy.h"
#include "headshare/ops/product.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace {

constexpr int64_t kTileRepetitions = 1000;

Tensor side(int64_t rows, int64_t columns, bool transposed, at::ScalarType type) {
  const Tensor values = transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
  return values.to(type);  // keeps the strides
}

// Returns the work of one turn: c = a b, as often as the case says.
std::function<void()> ours(const ProductCase& one, Precision precision, const Tensor& a, const Tensor& b,
                           const Tensor& c) {
  const auto products = precision == Precision::kBf16x3 ? FloatProducts::kBf16x3 : FloatProducts::kFp32;
  if (!one.tile) return [=] { multiply(a, b, c, Into::kReplace, products); };
  return [=] {
    for (int64_t i = 0; i < kTileRepetitions; ++i) {
      tile_gemm().f32(one.M, one.N, one.K, a.const_data_ptr<float>(), one.K, b.const_data_ptr<float>(), one.N,
                      c.data_ptr<float>(), one.N, /*accumulate=*/false);
    }
  };
}

std::function<void()> torchs(const ProductCase& one, const Tensor& a, const Tensor& b, Tensor c) {
  return [=]() mutable {
    for (int64_t i = 0; i < (one.tile ? kTileRepetitions : 1); ++i) at::mm_out(c, a, b);
  };
}

// Some rows of the exact product are enough to tell a wrong one. Sums of K addends in another order differ by about
// sqrt(K) roundings of what is summed; of halves, by what each addend misses.
void check(const ProductCase& one, Precision precision, const Tensor& a, const Tensor& b, const Tensor& mine,
           const Tensor& theirs) {
  const int64_t rows = std::min<int64_t>(one.M, 32);
  const Tensor exact = at::mm(a.narrow(0, 0, rows).to(at::kDouble), b.to(at::kDouble));
  const auto error = [&](const Tensor& c) { return (c.narrow(0, 0, rows) - exact).abs().max().item<double>(); };
  const double unit = precision == Precision::kBf16x3 ? 0x1p-16 : 0x1p-24 * std::sqrt(static_cast<double>(one.K));
  const double rounding = unit * exact.abs().max().item<double>();
  const double allowed = 2 * error(theirs) + rounding;
  HS_CHECK(error(mine) <= allowed, one.name, ": the product is off by ", error(mine), ", allowed ", allowed,
           ": not timed");
}

}  // namespace

std::vector<ProductCase> product_cases(int64_t tokens, int64_t d_model, int64_t vocabulary) {
  const int64_t wide = 4 * d_model;
  const int64_t chunk = cross_entropy_chunk(tokens, vocabulary);
  return {
      {.name = "feed-forward", .M = tokens, .K = d_model, .N = wide, .b_transposed = true},
      {.name = "feed-forward, gradient of its input", .M = tokens, .K = wide, .N = d_model},
      {.name = "feed-forward, gradient of its weight", .M = wide, .K = tokens, .N = d_model, .a_transposed = true},
      {.name = "scores of a chunk", .M = chunk, .K = d_model, .N = vocabulary, .b_transposed = true},
      {.name = "scores, gradient of their input", .M = chunk, .K = vocabulary, .N = d_model},
      {.name = "scores, gradient of their weight", .M = vocabulary, .K = chunk, .N = d_model, .a_transposed = true},
      {.name = "tile: scores of 64 queries", .M = 128, .K = 64, .N = 64, .tile = true},
      {.name = "tile: values under weights", .M = 64, .K = 128, .N = 64, .tile = true},
  };
}

std::vector<ProductRow> bench_product(const ProductCase& one, Precision precision, const TurnOptions& turns) {
  const at::ScalarType type = precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  const Tensor a = side(one.M, one.K, one.a_transposed, type);
  const Tensor b = side(one.K, one.N, one.b_transposed, type);
  const Tensor mine = at::empty({one.M, one.N}, at::kFloat);
  const Tensor theirs = at::empty({one.M, one.N}, type);
  const std::vector<std::function<void()>> actions = {ours(one, precision, a, b, mine), torchs(one, a, b, theirs)};
  for (const auto& action : actions) action();
  check(one, precision, a, b, mine, theirs);
  const std::vector<Timing> times = take_turns(actions, turns);
  const double flops = 2.0 * static_cast<double>(one.M * one.K * one.N * (one.tile ? kTileRepetitions : 1));
  std::vector<ProductRow> rows;
  for (const auto& [name, timing] : {std::pair("headshare", times[0]), std::pair("torch", times[1])}) {
    rows.push_back({one, name, precision, timing, flops / timing.median_ms / 1e6});
  }
  return rows;
}

}  // namespace headshare
