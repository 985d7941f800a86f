#include "headshare/bench/product_bench.h"

#include <gmock/gmock.h>

namespace headshare {
namespace {

TEST(ProductBench, TimesBothOnEveryProduct) {
  const TurnOptions turns = {.least_rounds = 2, .most_rounds = 2};
  for (const ProductCase& one : product_cases(/*tokens=*/48, /*d_model=*/32, /*vocabulary=*/500)) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16x3}) {
      if (one.tile && precision != Precision::kFp32) continue;
      const std::vector<ProductRow> rows = bench_product(one, precision, turns);
      ASSERT_EQ(rows.size(), 2U);
      EXPECT_EQ(rows[0].contender, "headshare");
      EXPECT_EQ(rows[1].contender, "torch");
      for (const ProductRow& row : rows) EXPECT_GT(row.gflops, 0) << one.name;
    }
  }
}

TEST(ProductBench, CountsTheWorkOfATurn) {
  const ProductCase one = {.name = "x", .M = 64, .K = 32, .N = 48};
  for (const ProductRow& row : bench_product(one, Precision::kFp32, {.least_rounds = 3, .most_rounds = 3})) {
    EXPECT_NEAR(row.gflops * row.timing.median_ms * 1e6, 2.0 * 64 * 32 * 48, 1);
  }
}

}  // namespace
}  // namespace headshare
