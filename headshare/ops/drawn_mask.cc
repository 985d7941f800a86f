#include "headshare/ops/drawn_mask.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

namespace headshare {
namespace {

// Each tensor holds 32-bit words in 64-bit integers; the four broadcast against each other.
using Words = std::array<Tensor, 4>;

constexpr int64_t kLow = 0xFFFFFFFF;

// Returns the high and the low word of factor * word. The product of 64 bits wraps around the sign, which the masks of
// both words take away.
std::pair<Tensor, Tensor> multiplied(const Tensor& word, int64_t factor) {
  const Tensor product = word * factor;
  return {product.bitwise_right_shift(32).bitwise_and_(kLow), product.bitwise_and(kLow)};
}

// Computes philox4x32() (base/rng.h). The first rounds work on small tensors, because the words of a counter depend on
// one dimension each.
Words philox(Words c, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kernels::kMaskRounds; ++round) {
    const auto [high0, low0] = multiplied(c[0], 0xD2511F53);
    const auto [high1, low1] = multiplied(c[2], 0xCD9E8D57);
    c = {high1.bitwise_xor(c[1]).bitwise_xor_(static_cast<int64_t>(k0)), low1,
         high0.bitwise_xor(c[3]).bitwise_xor_(static_cast<int64_t>(k1)), low0};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// Tells for the eight 16-bit numbers of each counter whether they stay: bool [..., 8] in a new dimension `dim`.
Tensor kept_numbers(const Words& words, const kernels::DropoutMask& mask, int64_t dim) {
  std::vector<Tensor> kept;
  const auto threshold = static_cast<int64_t>(mask.threshold);
  for (const Tensor& word : at::broadcast_tensors({words[0], words[1], words[2], words[3]})) {
    kept.push_back(word.bitwise_and(0xFFFF) >= threshold);
    kept.push_back(word.bitwise_right_shift(16) >= threshold);
  }
  return at::stack(kept, dim);
}

Tensor factors(const Tensor& kept, const kernels::DropoutMask& mask, const at::TensorOptions& options) {
  return kept.to(options).mul_(static_cast<double>(mask.kept_scale()));
}

}  // namespace

Tensor drawn_weight_factors(const kernels::DropoutMask& mask, const DrawnPart& part, const at::TensorOptions& options) {
  if (part.B * part.heads * part.T * part.S == 0) return at::empty({part.B, part.heads, part.T, part.S}, options);
  const at::TensorOptions integers = options.dtype(at::kLong);
  const int64_t first = part.first_key / 8, skipped = part.first_key % 8;
  const int64_t eights = (skipped + part.S + 7) / 8;
  const Tensor heads = mask.shared ? at::zeros({part.heads}, integers) : at::arange(part.heads, integers);
  const Words counters = {at::arange(part.first_query, part.first_query + part.T, integers).view({1, 1, -1, 1}),
                          at::arange(first, first + eights, integers).view({1, 1, 1, -1}), heads.view({1, -1, 1, 1}),
                          at::arange(part.B, integers).view({-1, 1, 1, 1})};
  const Tensor kept = kept_numbers(philox(counters, mask.key), mask, /*dim=*/4);  // [B, heads, T, eights, 8]
  return factors(kept.flatten(3).slice(3, skipped, skipped + part.S), mask, options);
}

Tensor drawn_element_factors(const kernels::DropoutMask& mask, int64_t n, const at::TensorOptions& options) {
  constexpr int64_t kLanes = 512, kBlock = 8 * kLanes;
  if (n == 0) return at::empty({0}, options);
  const at::TensorOptions integers = options.dtype(at::kLong);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  const Tensor none = at::zeros({1, 1}, integers);
  const Words counters = {at::arange(blocks * kLanes, integers).view({blocks, kLanes}), none, none, none};
  const Tensor kept = kept_numbers(philox(counters, mask.key), mask, /*dim=*/1);  // [blocks, 8, lanes]
  return factors(kept.flatten().slice(0, 0, n), mask, options);
}

}  // namespace headshare
