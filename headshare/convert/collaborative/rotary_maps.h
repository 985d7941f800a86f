// Maps whose columns i and i + D / 2 rotary positions turn together, as complex numbers and back.
#pragma once

#include <ATen/core/Tensor.h>

namespace headshare {

using at::Tensor;

// [.., D] -> complex [.., D / 2], and back.
Tensor as_complex(const Tensor& maps);
Tensor as_pairs_of_columns(const Tensor& turning);

// The matrices [.., 2 F, 2 F] that multiply the pairs of a row's columns (f, F + f) by complex numbers [.., F].
Tensor turning_matrices(const Tensor& numbers);

// [H, E, Dk] -> [F, H, E, Dk / 2 F], complex: a problem for each of F frequencies.
Tensor by_frequency(const Tensor& maps, int64_t F);

// Slices' maps [F, n, E, r] as those of n heads: complex, with r = 1, [n, E, 2 F]; real, with F = 1, [n, E, r].
Tensor as_real_maps(const Tensor& slices);
// The other way round: [n, E, D] -> [D / 2, n, E, 1], complex, where pairs of columns turn; else [1, n, E, D].
Tensor as_slices(const Tensor& maps, bool turning);

}  // namespace headshare
