// Tests of tensors share these helpers.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headshare/ops/layer.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {

// Sets an environment variable while it lives.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) before_ = old;
    setenv(name, value, /*replace=*/1);
  }
  ~ScopedEnvironment() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const char* name_;
  std::string before_;
};

// Decides, while it lives, whether products of bfloat16 tensors are computed in float32, whatever this CPU is good at.
class WidenedProducts {
 public:
  explicit WidenedProducts(bool widened) { force_widened_products(widened); }
  ~WidenedProducts() { force_widened_products(std::nullopt); }
  WidenedProducts(const WidenedProducts&) = delete;
  WidenedProducts& operator=(const WidenedProducts&) = delete;
};

// Returns both ways where this CPU has bfloat16 products.
inline std::vector<bool> ways_to_multiply_bf16() {
  return tile_gemm_name(/*bf16=*/true) == "none" ? std::vector{true} : std::vector{true, false};
}

// Returns the largest |a - b|; infinite where one is NaN or the shapes differ, 0 for empty tensors.
inline double distance(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const double largest = (a.cpu().to(at::kDouble) - b.cpu().to(at::kDouble)).abs().max().item<double>();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

// Returns the largest |x|, at least 1: absolute tolerances are relative to it.
inline double magnitude(const Tensor& x) { return x.numel() == 0 ? 1 : std::max(1.0, x.abs().max().item<double>()); }

inline testing::AssertionResult close(const Tensor& actual, const Tensor& expected, double tolerance) {
  const double gap = distance(actual, expected);
  if (gap <= tolerance) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  failure << "differ by " << gap << ", tolerance " << tolerance << "; shapes " << actual.sizes() << " and "
          << expected.sizes();
  if (actual.numel() + expected.numel() <= 64) failure << "\nactual " << actual << "\nexpected " << expected;
  return failure;
}

// Tells whether tensors are equal up to the rounding of some hundred double operations.
inline testing::AssertionResult same(const Tensor& actual, const Tensor& expected) {
  return close(actual, expected, 1e-12 * magnitude(expected));
}

// Draws from N(0, deviation^2), the same for every call with the same seed.
inline Tensor random_tensor(at::IntArrayRef sizes, uint64_t seed, at::TensorOptions options = at::kDouble,
                            double deviation = 1) {
  return at::empty(sizes, at::kFloat).normal_(0, deviation, keyed_generator(at::kCPU, seed)).to(options);
}

}  // namespace headshare

// Skips the test, by name, where there is no GPU.
#define HS_NEEDS_CUDA() \
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device"
