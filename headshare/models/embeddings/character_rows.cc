#include "headshare/models/embeddings/character_rows.h"

#include <ATen/ATen.h>

#include <array>

namespace headshare {

Tensor character_rows(const Tensor& code_points, int64_t buckets) {
  constexpr std::array<int64_t, kCharacterHashes> kPrimes = {31, 43, 59, 61, 73, 97, 103, 113};
  const Tensor primes = at::tensor(kPrimes, code_points.options());
  const Tensor begins = at::arange(kCharacterHashes, code_points.options()) * buckets;
  return ((code_points + 1).unsqueeze(1) * primes).remainder(buckets) + begins;
}

}  // namespace headshare
