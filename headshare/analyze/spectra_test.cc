#include "headshare/analyze/spectra.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "headshare/base/rng.h"
#include "headshare/ops/layer.h"

namespace headshare {
namespace spectra_test {

constexpr int64_t kH = 3, kE = 12;

Tensor normal(at::IntArrayRef sizes, uint64_t key, at::ScalarType type) {
  return at::randn(sizes, keyed_generator(at::kCPU, key), at::TensorOptions(type));
}

// Makes heads of width `d`, in F problems.
HeadSlices slices(int64_t d, int64_t F = 1, at::ScalarType type = at::kDouble) {
  return {normal({F, kH, kE, d}, 1, type), normal({F, kH, kE, d}, 2, type)};
}

// Counts the dimensions of all heads' keys together.
int64_t width(const HeadSlices& s) {
  return s.key.size(0) * s.key.size(1) * s.key.size(3) * (s.key.is_complex() ? 2 : 1);
}

// Returns P_h, formed: [F, H, E, E].
Tensor formed(const HeadSlices& s) { return s.query.matmul(at::adjoint(s.key)); }

// Returns the `count` largest singular values of all problems' matrices [F, .., ..], falling.
std::vector<double> dense_values(const Tensor& matrices, size_t count) {
  const Tensor all = std::get<0>(at::linalg_svdvals(matrices).flatten().sort(-1, true)).contiguous();
  return {all.data_ptr<double>(), all.data_ptr<double>() + count};
}

void expect_near(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-9 * expected.front()) << i;
}

TEST(HeadSpectra, AreThoseOfTheProductsThatAreNeverFormed) {
  const HeadSlices s = slices(4);
  const std::vector<Spectrum> spectra = head_spectra(s);
  ASSERT_EQ(spectra.size(), 3U);
  for (int64_t h = 0; h < kH; ++h) {
    const Spectrum& one = spectra[static_cast<size_t>(h)];
    expect_near(one.values, dense_values(formed(s).select(1, h), 4));
    EXPECT_EQ(one.dimensions, 4);
  }
}

TEST(HeadSpectra, OfRotaryHeadsHaveTwoDimensionsForAValue) {
  const HeadSlices s = slices(1, 4, at::kComplexDouble);
  const std::vector<Spectrum> spectra = head_spectra(s);
  expect_near(spectra[1].values, dense_values(formed(s).select(1, 1), 4));
  EXPECT_EQ(spectra[1].value_dimensions, 2);
  EXPECT_EQ(spectra[1].dimensions, 8);
  EXPECT_EQ(spectra[1].width_for(1), 8);
}

TEST(HeadSpectra, OfHeadsWiderThanTheModelEndWithIt) {
  const HeadSlices s = slices(kE + 3);
  const std::vector<Spectrum> spectra = head_spectra(s);
  expect_near(spectra[0].values, dense_values(formed(s).select(1, 0), kE));
  EXPECT_EQ(spectra[0].dimensions, kE + 3);
}

TEST(JointSpectrum, IsThatOfTheSumOfAllHeads) {
  for (const auto& s : {slices(3), slices(1, 4, at::kComplexDouble)}) {
    const Spectrum joint = joint_spectrum(s, width(s));
    expect_near(joint.values, dense_values(formed(s).sum(1), joint.values.size()));
    EXPECT_GE(joint.dimensions, static_cast<int64_t>(joint.values.size()));
  }
}

TEST(StackedSpectrum, IsThatOfTheSideThatNeedsMoreDimensions) {
  HeadSlices s = slices(3);
  // All heads have the same queries but for their bases: their keys need more dimensions.
  s.query = s.query.select(1, 0).unsqueeze(1).matmul(normal({kH, 3, 3}, 5, at::kDouble));
  const std::vector<double> keys = dense_values(formed(s).permute({0, 3, 1, 2}).flatten(2), 9);
  const Spectrum stacked = stacked_spectrum(s, width(s));
  ASSERT_EQ(stacked.values.size(), 9U);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(stacked.values[i], keys[i], 1e-6 * keys.front());
  const Spectrum other = stacked_spectrum({s.key, s.query}, width(s));
  EXPECT_EQ(other.width_for(0.9), stacked.width_for(0.9));
}

TEST(Spectra, HaveSharesOfTheEnergyThatSumToOne) {
  const HeadSlices s = slices(4);
  for (const Spectrum& one : {head_spectra(s)[0], joint_spectrum(s, width(s)), stacked_spectrum(s, width(s))}) {
    const std::vector<double> shares = one.shares();
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
    EXPECT_TRUE(std::is_sorted(shares.rbegin(), shares.rend()));
  }
  // The stacked map holds all heads' energy.
  const double all = at::linalg_vector_norm(formed(s)).square().item<double>();
  EXPECT_NEAR(stacked_spectrum(s, width(s)).energy(), all, 1e-6 * all);
}

}  // namespace spectra_test
}  // namespace headshare
