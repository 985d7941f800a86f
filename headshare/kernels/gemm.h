// The kernels are built on this matrix product, a table of functions: ops/ hands in the fastest of the machine
// (oneDNN's brgemm through libtorch), tests also the plain loops below.
#pragma once

#include <cstdint>

#include "headshare/kernels/bf16.h"

namespace headshare::kernels {

// The product is C [M, N] = A [M, K] B [K, N], or C += A B, row-major with the given distances between rows.
struct TileGemm {
  void (*f32)(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
              int64_t ldc, bool accumulate);
  // B is in pairs of rows, [ceil(K / 2), N, 2] with a zero row where K is odd; ldb counts columns. The function is null
  // where the machine has no such product.
  void (*bf16)(int64_t M, int64_t N, int64_t K, const Bf16* A, int64_t lda, const Bf16* B, int64_t ldb, float* C,
               int64_t ldc, bool accumulate);
};

// Returns three loops that sum in float as written: every other table is compared with them.
const TileGemm& plain_gemm();

}  // namespace headshare::kernels
