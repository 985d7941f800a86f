#include "headshare/ops/product.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>

#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/gelu.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

// The sizes lie around panels of 128 columns, blocks of 128 rows, depths of 256, 512 and 768; some are small and some
// long.
const std::vector<std::array<int64_t, 3>> kSizes = {
    {0, 5, 3},      {3, 0, 4},      {1, 1, 1},       {64, 512, 64},    {128, 768, 64}, {129, 769, 65},
    {127, 513, 63}, {16, 8192, 16}, {17, 3000, 100}, {1000, 130, 200}, {20, 50, 5000}, {300, 700, 300},
    {64, 2048, 64}, {19, 1537, 83}, {2, 1500, 1500}, {20, 1030, 8200}};

enum class Layout { kRows, kColumns, kStridedRows, kStridedColumns };

// The same values are laid out in each way; what lies between them is NaN.
Tensor laid_out(const Tensor& values, Layout layout) {
  if (layout == Layout::kRows) return values;
  if (layout == Layout::kColumns) return values.t().contiguous().t();
  if (layout == Layout::kStridedColumns) return laid_out(values.t(), Layout::kStridedRows).t();
  const Tensor wide = at::full({values.size(0), values.size(1) + 7}, std::nan(""), values.options());
  Tensor part = wide.narrow(1, 3, values.size(1));
  return part.copy_(values);
}

constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kStridedRows, Layout::kStridedColumns};

constexpr FloatProducts kProducts[] = {FloatProducts::kFp32, FloatProducts::kBf16x3};

// Returns twice the error of at::mm, and rounding.
double tolerance(const Tensor& a, const Tensor& b, const Tensor& exact) {
  return 2 * distance(at::mm(a, b), exact) + 8 * 0x1p-24 * magnitude(exact);
}

TEST(Multiply, IsTheProductInEveryLayout) {
  for (const auto& [M, K, N] : kSizes) {
    const Tensor a = random_tensor({M, K}, 1, at::kFloat);
    const Tensor b = random_tensor({K, N}, 2, at::kFloat);
    const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
    for (const Layout of_a : kLayouts) {
      for (const Layout of_b : kLayouts) {
        const Tensor c = laid_out(at::full({M, N}, std::nan("")).to(at::kFloat), Layout::kStridedRows);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c);
        EXPECT_TRUE(close(c, exact, tolerance(a, b, exact)))
            << M << " " << K << " " << N << " layouts " << int(of_a) << " " << int(of_b);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c, Into::kAdd);
        EXPECT_TRUE(close(c, 2 * exact, 2 * tolerance(a, b, exact)));
      }
    }
  }
}

// Returns what three products of bfloat16 halves miss: 3 x 2^-16 of each addend at most, whose signs are random here.
double tolerance_of_halves(const Tensor& a, const Tensor& b, const Tensor& exact) {
  return tolerance(a, b, exact) +
         3 * 0x1p-16 * a.square().to(at::kDouble).mm(b.square().to(at::kDouble)).sqrt().max().item<double>();
}

TEST(Multiply, OfHalvesIsTheProductInEveryLayout) {
  for (const auto& [M, K, N] : kSizes) {
    const Tensor a = random_tensor({M, K}, 1, at::kFloat);
    const Tensor b = random_tensor({K, N}, 2, at::kFloat);
    const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
    if (exact.numel() == 0 || K == 0) continue;
    for (const Layout of_a : kLayouts) {
      for (const Layout of_b : kLayouts) {
        const Tensor c = laid_out(at::full({M, N}, std::nan("")).to(at::kFloat), Layout::kStridedRows);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c, Into::kReplace, FloatProducts::kBf16x3);
        EXPECT_TRUE(close(c, exact, tolerance_of_halves(a, b, exact)))
            << M << " " << K << " " << N << " layouts " << int(of_a) << " " << int(of_b);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c, Into::kAdd, FloatProducts::kBf16x3);
        EXPECT_TRUE(close(c, 2 * exact, 2 * tolerance_of_halves(a, b, exact)));
      }
    }
  }
}

TEST(Multiply, OfHalvesIsNotThatOfFloats) {
  if (tile_gemm_name(/*bf16=*/true) != "brgemm") GTEST_SKIP() << "no bfloat16 kernels: both are products of floats";
  const Tensor a = random_tensor({300, 700}, 1, at::kFloat), b = random_tensor({700, 300}, 2, at::kFloat);
  const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
  const Tensor whole = at::empty({300, 300}), halves = at::empty({300, 300});
  multiply(a, b, whole);
  multiply(a, b, halves, Into::kReplace, FloatProducts::kBf16x3);
  EXPECT_GT(distance(halves, exact), 4 * distance(whole, exact));
  const Tensor of_bf16 = a.to(at::kBFloat16).to(at::kDouble).mm(b.to(at::kBFloat16).to(at::kDouble));
  EXPECT_LT(100 * distance(halves, exact), distance(of_bf16, exact));
}

TEST(Multiply, SumsBfloat16InFloat32) {
  for (const auto& [M, K, N] : kSizes) {
    const Tensor a = random_tensor({M, K}, 1, at::kBFloat16);
    const Tensor b = random_tensor({K, N}, 2, at::kBFloat16);
    const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
    const double tolerance_of_mm = distance(a.mm(b), exact);  // rounds the result
    for (const Layout of_a : {Layout::kRows, Layout::kColumns}) {
      for (const Layout of_b : kLayouts) {
        const Tensor c = at::full({M, N}, std::nan("")).to(at::kFloat);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c);
        EXPECT_TRUE(close(c, exact, 2 * tolerance_of_mm + 1e-6 * magnitude(exact)))
            << M << " " << K << " " << N << " layouts " << int(of_a) << " " << int(of_b);
        multiply(laid_out(a, of_a), laid_out(b, of_b), c, Into::kAdd);
        EXPECT_TRUE(close(c, 2 * exact, 4 * tolerance_of_mm + 1e-6 * magnitude(exact)));
      }
    }
  }
}

TEST(Multiply, OfGeluIsTheProductWithWhatGeluGives) {
  for (const auto& [M, K, N] : kSizes) {
    const Tensor a = random_tensor({M, K}, 1, at::kFloat);
    const Tensor b = random_tensor({K, N}, 2, at::kFloat);
    for (const kernels::GeluForm form : {kernels::GeluForm::kTanh, kernels::GeluForm::kErf}) {
      for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
        for (const FloatProducts products : kProducts) {
          const Tensor c = at::full({M, N}, std::nan("")).to(at::kFloat), expected = at::empty_like(c);
          multiply_gelu(laid_out(a, layout), b, form, c, products);
          multiply(laid_out(a, layout), gelu_values(b, form), expected, Into::kReplace, products);
          EXPECT_TRUE(at::equal(c, expected)) << M << " " << K << " " << N;
        }
      }
    }
  }
}

TEST(Multiply, AddsARow) {
  const Tensor row = random_tensor({200}, 3, at::kFloat);
  for (const auto& [M, K] : {std::pair<int64_t, int64_t>{3, 5}, {140, 900}}) {
    const Tensor a = random_tensor({M, K}, 1, at::kFloat);
    const Tensor b = random_tensor({K, 200}, 2, at::kFloat);
    for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
      const Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble)) + row;
      const Tensor c = at::full({M, 200}, std::nan("")).to(at::kFloat);
      multiply_add_row(laid_out(a, layout), b, row, c);
      EXPECT_TRUE(close(c, exact, tolerance(a, b, exact)));
      multiply_add_row(laid_out(a, layout), b, row, c, FloatProducts::kBf16x3);
      EXPECT_TRUE(close(c, exact, tolerance_of_halves(a, b, exact)));
    }
  }
}

TEST(Multiply, OfPackedPanelsGivesTheSameBits) {
  for (const auto& [M, K, N] : kSizes) {
    const Tensor a = random_tensor({M, K}, 1, at::kFloat), weight = random_tensor({N, K}, 2, at::kFloat);
    if (!multiplies_in_blocks(a, M, K, N)) continue;
    for (const FloatProducts products : kProducts) {
      const Tensor panels = pack_panels(weight.t(), products);
      const Tensor of_rows = pack_panels(weight.t().contiguous(), products);
      for (const Tensor& row : {Tensor(), random_tensor({N}, 3, at::kFloat)}) {
        const Tensor found = at::full({M, N}, std::nan("")), wanted = at::empty({M, N});
        row.defined() ? multiply_add_row(a, weight.t(), row, wanted, products)
                      : multiply(a, weight.t(), wanted, Into::kReplace, products);
        for (const Tensor& packed : {panels, of_rows}) {
          multiply_packed(laid_out(a, Layout::kStridedRows), packed, row, found);
          EXPECT_TRUE(at::equal(found, wanted)) << M << " x " << K << " x " << N;
        }
      }
    }
  }
}

TEST(Multiply, LeavesWhatLiesBesideAlone) {
  const Tensor wide = at::full({300, 220}, 7.0, at::kFloat);
  multiply(random_tensor({300, 200}, 1, at::kFloat), random_tensor({200, 100}, 2, at::kFloat), wide.narrow(1, 60, 100));
  EXPECT_EQ(wide.narrow(1, 0, 60).ne(7).sum().item<int64_t>(), 0);
  EXPECT_EQ(wide.narrow(1, 160, 60).ne(7).sum().item<int64_t>(), 0);
}

// The gradient of a weight of 64 x 64 sums over all tokens: room for all of them would exceed what attention keeps.
TEST(Multiply, PacksLittleForASmallProduct) {
  const Tensor a = laid_out(random_tensor({64, 32768}, 1, at::kFloat), Layout::kColumns);
  const Tensor b = random_tensor({32768, 64}, 2, at::kFloat);
  const Tensor c = at::empty({64, 64}, at::kFloat);
  if (!multiplies_in_blocks(a, 64, 32768, 64)) GTEST_SKIP() << "no AVX-512: at::mm packs as it likes";
  const AllocationMeter meter;
  multiply(a, b, c);
  EXPECT_GT(meter.peak(), 0);
  EXPECT_LT(meter.peak(), 1 << 20);
}

TEST(Multiply, TakesOtherTypesAndLayouts) {
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16}) {
    const Tensor a = random_tensor({130, 140}, 1, type);
    const Tensor b = random_tensor({140, 150}, 2, type);
    const Tensor c = at::empty({130, 150}, type);
    multiply(a, b, c);
    EXPECT_TRUE(at::equal(c, a.mm(b)));
  }
  const Tensor a = random_tensor({130, 280}, 1, at::kFloat).slice(1, 0, 280, 2);  // no stride is 1
  const Tensor b = random_tensor({140, 150}, 2, at::kFloat);
  const Tensor c = at::empty({130, 150}, at::kFloat);
  multiply(a, b, c);
  EXPECT_TRUE(close(c, a.mm(b), 1e-4));
}

TEST(Multiply, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Tensor a = random_tensor({300, 900}, 1, at::kFloat);
  const Tensor b = random_tensor({900, 400}, 2, at::kFloat);
  if (!multiplies_in_blocks(a, 300, 900, 400)) GTEST_SKIP() << "no AVX-512: at::mm promises nothing";
  const int before = at::get_num_threads();
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    for (const FloatProducts products : kProducts) {
      std::vector<Tensor> found;
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        found.push_back(at::empty({300, 400}));
        multiply(laid_out(a, layout), b, found.back(), Into::kReplace, products);
      }
      EXPECT_TRUE(at::equal(found[0], found[1]));
      EXPECT_TRUE(at::equal(found[0], found[2]));
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace headshare
