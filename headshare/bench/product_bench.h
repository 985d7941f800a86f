// This benchmark times the matrix products that a training step consists of, ours and libtorch's: they bound everything
// else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/bench/timing.h"
#include "headshare/ops/precision.h"

namespace headshare {

// A case is c [M, N] = a [M, K] b [K, N]; either side may lie transposed in memory.
struct ProductCase {
  std::string name;  // where it occurs
  int64_t M = 1, K = 1, N = 1;
  bool a_transposed = false, b_transposed = false;
  bool tile = false;  // a product inside attention: small enough for the first caches, done many times
};

struct ProductRow {
  ProductCase of;
  std::string contender;  // "headshare", "torch"
  Precision precision = Precision::kFp32;
  Timing timing = {};  // of all the times it is done
  double gflops = 0;   // 2 M K N by the median
};

// Lists the products of a model of width `d_model` and `vocabulary` on `tokens` tokens: the forward pass and both
// gradients of a feed-forward layer, and of the output layer for a chunk of tokens; and those of attention tiles.
std::vector<ProductCase> product_cases(int64_t tokens, int64_t d_model, int64_t vocabulary);

// Lets headshare's product and libtorch's take turns. Throws Error where headshare's is further from the exact one than
// twice libtorch's and rounding allow: a wrong product is not timed.
std::vector<ProductRow> bench_product(const ProductCase& one, Precision precision, const TurnOptions& turns);

}  // namespace headshare
