#include "headshare/convert/collaborative/line_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <complex>

namespace headshare {
namespace {

constexpr size_t kDegree = 6;
using Polynomial = std::array<double, kDegree + 1>;

double value_at(const Polynomial& f, double s) {
  double value = 0;
  for (size_t i = f.size(); i-- > 0;) value = value * s + f[i];
  return value;
}

// The monic companion matrix of the derivative, whose eigenvalues are its roots; `degree` is the derivative's.
Tensor companion(const Polynomial& f, int64_t degree) {
  Tensor matrix = at::diag(at::ones({degree - 1}, at::kDouble), -1);
  const double lead = static_cast<double>(degree + 1) * f[static_cast<size_t>(degree) + 1];
  for (int64_t i = 0; i < degree; ++i) {
    matrix[i][degree - 1] = -static_cast<double>(i + 1) * f[static_cast<size_t>(i) + 1] / lead;
  }
  return matrix;
}

double best_step(const Polynomial& f) {
  // A leading coefficient that is rounding noise would make roots of noise.
  const double largest =
      std::abs(*std::max_element(f.begin() + 1, f.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  int64_t degree = kDegree - 1;
  while (degree > 0 && std::abs(f[static_cast<size_t>(degree) + 1]) <= 1e-14 * largest) --degree;
  if (degree < 1 || largest == 0) return 0;
  const Tensor roots = at::linalg_eigvals(companion(f, degree)).contiguous();
  const auto* root = reinterpret_cast<const std::complex<double>*>(roots.data_ptr<c10::complex<double>>());
  double best = 0;
  for (int64_t i = 0; i < degree; ++i) {
    const double s = root[i].real();
    // A double root may come with a small imaginary part; a value is asked of the polynomial in any case.
    if (s > 0 && value_at(f, s) < value_at(f, best)) best = s;
  }
  return best;
}

}  // namespace

Tensor best_steps(const Tensor& coefficients) {
  const Tensor rows = coefficients.contiguous();
  Tensor steps = at::zeros({rows.size(0)}, at::kDouble);
  for (int64_t f = 0; f < rows.size(0); ++f) {
    Polynomial polynomial{};
    std::copy_n(rows.data_ptr<double>() + f * rows.size(1), polynomial.size(), polynomial.begin());
    steps[f] = best_step(polynomial);
  }
  return steps;
}

}  // namespace headshare
