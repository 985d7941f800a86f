#include "headshare/kernels/element_dropout.h"

#include <algorithm>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/scratch.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {
namespace {

// A block is one call of keep_tile: 8 numbers are one counter of Philox, 512 lanes fill every vector.
constexpr int64_t kRows = 8, kLanes = 512, kBlock = kRows * kLanes;

void scale(const float* x, const float* factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor[i];
}

void scale(const Bf16* x, const float* factor, int64_t n, Bf16* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(to_float(x[i]) * factor[i]);
}

}  // namespace

template <typename T>
void element_dropout(const T* x, int64_t n, const DropoutMask& mask, T* y, const Parallel& parallel) {
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  // Each thread gets a few items, because an item costs a call.
  const int64_t items = std::min(blocks, 4 * parallel.threads);
  parallel.run(items, [&](int64_t item, int64_t) {
    alignas(kCacheLine) float factors[kBlock];
    for (int64_t block = blocks * item / items; block < blocks * (item + 1) / items; ++block) {
      tiles().keep_tile(factors, kRows, kLanes, mask, /*b=*/0, /*h=*/0, block * kLanes, /*first_key=*/0);
      scale(x + block * kBlock, factors, std::min(kBlock, n - block * kBlock), y + block * kBlock);
    }
  });
}

template void element_dropout<float>(const float*, int64_t, const DropoutMask&, float*, const Parallel&);
template void element_dropout<Bf16>(const Bf16*, int64_t, const DropoutMask&, Bf16*, const Parallel&);

}  // namespace headshare::kernels
