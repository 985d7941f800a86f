// Decides which attention weights dropout keeps, by a function of (key, sentence, head, query, memory key) alone, so
// that the backward pass, another backend, another block size or another number of threads draws the same mask.
//   word w of Philox4x32-7 at counter (i, j / 8, h, b) holds the 16-bit numbers of keys j with j % 8 = 2 w, 2 w + 1;
//   weight (b, h, i, j) stays when its number is at least `threshold`
#pragma once

#include <cmath>
#include <cstdint>

#include "headshare/base/rng.h"

namespace headshare::kernels {

// Drawing is most of what dropout costs, and flash attention draws with as few.
inline constexpr int kMaskRounds = 7;

struct DropoutMask {
  uint64_t key = 0;
  uint32_t threshold = 0;  // of 65536; 0: no dropout
  bool shared = false;     // one mask for all heads: that of head 0

  bool active() const { return threshold > 0; }
  // Returns the factor of the kept weights, 1 / (1 - p) for the p that is really drawn.
  float kept_scale() const { return 65536.0F / static_cast<float>(65536 - threshold); }
  int64_t head(int64_t h) const { return shared ? 0 : h; }
};

// Makes the mask for p in [0, 1), to the nearest 1/65536; a p above zero never becomes none.
inline DropoutMask dropout_mask(double p, uint64_t key, bool shared) {
  auto threshold = static_cast<uint32_t>(std::lround(p * 65536));
  if (p > 0 && threshold == 0) threshold = 1;
  if (threshold > 65535) threshold = 65535;
  return {key, threshold, shared};
}

inline bool keeps(const DropoutMask& mask, int64_t b, int64_t h, int64_t i, int64_t j) {
  const auto words = philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(j / 8),
                                 static_cast<uint32_t>(mask.head(h)), static_cast<uint32_t>(b)},
                                mask.key, kMaskRounds);
  const uint32_t word = words[static_cast<size_t>(j % 8 / 2)];
  return (j % 2 == 0 ? word & 0xFFFF : word >> 16) >= mask.threshold;
}

}  // namespace headshare::kernels
