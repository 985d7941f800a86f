#include "headshare/ops/tile_gemm.h"

#include <ATen/native/CPUBlas.h>

#include <array>
#include <exception>
#include <vector>

// MKL's sgemm is inside libtorch; it is absent from builds of libtorch with another BLAS.
extern "C" __attribute__((weak)) void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
                                             const float*, const int*, const float*, const int*, const float*, float*,
                                             const int*);

namespace headshare {
namespace {

using kernels::Bf16;
namespace blas = at::native::cpublas;

void brgemm_f32(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                int64_t ldc, bool accumulate) {
  blas::brgemm(M, N, K, lda, ldb, ldc, accumulate, A, B, C, /*is_vnni=*/false);
}

void brgemm_bf16(int64_t M, int64_t N, int64_t K, const Bf16* A, int64_t lda, const Bf16* B, int64_t ldb, float* C,
                 int64_t ldc, bool accumulate) {
  blas::brgemm(M, N, K, lda, ldb, ldc, accumulate, reinterpret_cast<const at::BFloat16*>(A),
               reinterpret_cast<const at::BFloat16*>(B), C, /*is_vnni=*/true);
}

// sgemm is column-major: a row-major product is the product of the transposes the other way round.
void sgemm_f32(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
               int64_t ldc, bool accumulate) {
  const float one = 1;
  const float keep = accumulate ? 1 : 0;
  const auto m = static_cast<int>(M), n = static_cast<int>(N), k = static_cast<int>(K);
  const auto a = static_cast<int>(lda), b = static_cast<int>(ldb), c = static_cast<int>(ldc);
  sgemm_("N", "N", &n, &m, &k, &one, B, &b, A, &a, &keep, C, &c);
}

// Tells whether a product runs here and is right: brgemm throws where the CPU lacks the instructions.
template <typename Product>
bool works(const Product& product) {
  std::array<float, 16> result{};
  try {
    product(result.data());
    blas::brgemm_release();  // AMX tiles, where it used them
  } catch (const std::exception&) {
    return false;
  }
  return result[0] == 32 && result[15] == 32;  // ones [1, 32] by ones [32, 16]
}

std::vector<FloatProduct> find_float_products() {
  std::vector<FloatProduct> found;
  const std::vector<float> ones(512, 1.0F);
  const auto try_out = [&](const char* name, decltype(kernels::TileGemm::f32) multiply) {
    const auto product = [&](float* C) { multiply(1, 16, 32, ones.data(), 32, ones.data(), 16, C, 16, false); };
    if (works(product)) found.push_back({name, multiply});
  };
  try_out("brgemm", brgemm_f32);
  if (&sgemm_ != nullptr) try_out("sgemm", sgemm_f32);
  return found;
}

kernels::TileGemm find_products() {
  kernels::TileGemm found{};
  if (!float_products().empty()) found.f32 = float_products().front().multiply;
  const std::vector<Bf16> ones(512, kernels::to_bf16(1.0F));
  const auto product = [&](float* C) { brgemm_bf16(1, 16, 32, ones.data(), 32, ones.data(), 16, C, 16, false); };
  if (works(product)) found.bf16 = brgemm_bf16;
  return found;
}

}  // namespace

const std::vector<FloatProduct>& float_products() {
  static const std::vector<FloatProduct> found = find_float_products();
  return found;
}

const kernels::TileGemm& tile_gemm() {
  static const kernels::TileGemm table = find_products();
  return table;
}

std::string tile_gemm_name(bool bf16) {
  if (bf16) return tile_gemm().bf16 == nullptr ? "none" : "brgemm";
  return float_products().empty() ? "none" : float_products().front().name;
}

}  // namespace headshare
