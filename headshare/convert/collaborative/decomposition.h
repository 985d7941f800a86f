// Shared query and key maps for all heads of a layer: the canonical polyadic (CP) decomposition of what the heads
// compare, P_h = A_h B_h^H, without ever forming a P_h (docs/mathematics.md#re-parametrisation).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace headshare {

using at::Tensor;

// F separate problems of H slices each. A layer with rotary positions has one problem per frequency, with complex
// maps one column wide; any other layer is one problem with real maps as wide as its heads.
struct HeadSlices {
  Tensor query;  // A: [F, H, E, d], double or complex double
  Tensor key;    // B: [F, H, E, d]
};

// P_h = Q diag(m_h) K^H, approximately.
struct SharedFactors {
  Tensor query;   // Q: [F, E, R]
  Tensor mixing;  // M: [F, H, R]
  Tensor key;     // K: [F, E, R]
};

struct DecompositionOptions {
  int64_t iterations = 60;  // at most
  double tolerance = 5e-4;  // stop when ten iterations lower the error by less than this share of it
  int64_t restarts = 0;     // further tries, from random starts; the best is kept
  int64_t seed = 0;         // of the random starts
};

struct Decomposition {
  SharedFactors factors;
  std::vector<double> errors;  // of the try that was kept: its start, then after each iteration, never rising
  double error = 0;            // |P - Q diag(m) K^H| / |P| over all slices, Frobenius; the last of `errors`
};

// Called after each iteration with the number done, over all tries, and the error; false stops, and the best so far is
// the result.
using DecompositionProgress = std::function<bool(int64_t iterations, double error)>;

// The exact decomposition's rank: R above it is no better. H d, or less where E is small.
int64_t full_rank(const HeadSlices& slices);

// |P - Q diag(m) K^H| / |P| over all slices. It is the root of a difference of
// squares: below 1e-7 little is left of it.
double relative_error(const HeadSlices& slices, const SharedFactors& factors);

// The factors at a width of `rank`, not below theirs: where heads have fewer directions together, the rest is 0.
SharedFactors widened(const SharedFactors& factors, int64_t rank);

// The decomposition of width R. It starts from the largest singular triples of the single heads, which is exact at full
// rank, and goes on with alternating least squares made conjugate, with exact line search. `rank` is at least 1; one
// above full_rank() is lowered to it. Throws Error for values that are not finite.
Decomposition decompose(const HeadSlices& slices, int64_t rank, const DecompositionOptions& options,
                        const DecompositionProgress& progress = nullptr);

}  // namespace headshare
