// Multiplies large matrices on the CPU, in float32, faster than the BLAS behind at::mm.
#pragma once

#include <ATen/core/Tensor.h>

#include "headshare/kernels/passes.h"

namespace headshare {

using at::Tensor;

enum class Into { kReplace, kAdd };

// This says how float32 matrices are multiplied. kBf16x3: each number as the sum of two bfloat16 numbers, a product as
// three of those (kernels/halves.h): errors of some 2^-17 of the addends in place of 2^-24, and with AMX twice as fast.
// Where the processor has no bfloat16 kernels, and for matrices that are not blocked, it is kFp32.
enum class FloatProducts { kFp32, kBf16x3 };

// Returns what ComputeIn says of this thread.
FloatProducts float_products_in_use();

// Computes c = a b, or c += a b.
//   a [M, K], b [K, N] of any strides, c [M, N] with contiguous rows; c overlaps neither. All of one type, or a and b
//   bfloat16 and c float32, which then sums without rounding in between.
// Blocks for libtorch's small-matrix kernels (at::native::cpublas::brgemm) where the processor has AVX-512,
// c is float32 and the matrices are not tiny; at::mm otherwise. Every element is summed by one thread in an order
// that the shapes determine, so that equal shapes give equal bits with any number of threads.
void multiply(const Tensor& a, const Tensor& b, const Tensor& c, Into into = Into::kReplace,
              FloatProducts products = FloatProducts::kFp32);

// Computes c = a b + row, with row [N] added to every row.
void multiply_add_row(const Tensor& a, const Tensor& b, const Tensor& row, const Tensor& c,
                      FloatProducts products = FloatProducts::kFp32);

// Computes c = a gelu(b), of contiguous b: without room for gelu(b) where a's columns are contiguous and multiply()
// would block.
void multiply_gelu(const Tensor& a, const Tensor& b, kernels::GeluForm form, const Tensor& c,
                   FloatProducts products = FloatProducts::kFp32);

// Returns a float32 matrix b [K, N] as multiply() packs it, for one that meets many others: [panels, K, columns of a
// panel], or three times as deep in bfloat16.
Tensor pack_panels(const Tensor& b, FloatProducts products = FloatProducts::kFp32);

// Computes c = a b, or row [N] + a b in every row where row is defined: with the bits of multiply() and
// multiply_add_row(), of pack_panels(b) and without packing again. Requires multiplies_in_blocks(); a's columns and row
// are contiguous.
void multiply_packed(const Tensor& a, const Tensor& panels, const Tensor& row, const Tensor& c);

// Tells whether multiply() would use its own blocking for float32 matrices of these sizes.
bool multiplies_in_blocks(const Tensor& like, int64_t M, int64_t K, int64_t N);

}  // namespace headshare
