#include "headshare/kernels/gemm.h"

namespace headshare::kernels {
namespace {

void plain_f32(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
               int64_t ldc, bool accumulate) {
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t n = 0; n < N; ++n) {
      float sum = accumulate ? C[m * ldc + n] : 0;
      for (int64_t k = 0; k < K; ++k) sum += A[m * lda + k] * B[k * ldb + n];
      C[m * ldc + n] = sum;
    }
  }
}

void plain_bf16(int64_t M, int64_t N, int64_t K, const Bf16* A, int64_t lda, const Bf16* B, int64_t ldb, float* C,
                int64_t ldc, bool accumulate) {
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t n = 0; n < N; ++n) {
      float sum = accumulate ? C[m * ldc + n] : 0;
      for (int64_t k = 0; k < K; ++k) {
        sum += to_float(A[m * lda + k]) * to_float(B[(k / 2 * ldb + n) * 2 + k % 2]);
      }
      C[m * ldc + n] = sum;
    }
  }
}

}  // namespace

const TileGemm& plain_gemm() {
  static const TileGemm table = {plain_f32, plain_bf16};
  return table;
}

}  // namespace headshare::kernels
