// Splits float32 numbers into sums of two bfloat16 numbers, for products on processors that multiply bfloat16 many
// times as fast: Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations", 2019. With x = u + l and y = v + m the product is taken as u v + l v + u m: l m, at
// most 2^-16 of u v, is left out. Serial; whoever calls them divides the work among threads.
#pragma once

#include <cstdint>

#include "headshare/kernels/bf16.h"

namespace headshare::kernels {

// u is x to the nearest bfloat16 and l what x - u leaves, to the nearest: |x - u - l| <= 2^-16 |x|, but for what is
// lost below 2^-126. NaN and numbers that round to infinity have l = 0.
struct Halves {
  // Writes x [rows, depth] as a left side [rows, 3 even]: each row's u, l, u, where even is the depth rounded up to
  // whole pairs; a number beyond the depth is zero.
  void (*left)(const float* x, int64_t stride, int64_t rows, int64_t depth, Bf16* out, int64_t out_stride);
  // Writes x [depth, columns] as the right side [3 even / 2, columns, 2] that TileGemm wants: pairs of rows of v, of v
  // again and of m. Its product with left() sums u v + l v + u m.
  void (*right)(const float* x, int64_t stride, int64_t depth, int64_t columns, Bf16* out, int64_t out_stride);
};

// Returns how deep the sides of a product of this depth are.
constexpr int64_t depth_in_halves(int64_t depth) { return 3 * ((depth + 1) / 2 * 2); }

// Returns the functions for this CPU; force_tiles_target() of tiles.h holds here, too.
const Halves& halves();

}  // namespace headshare::kernels
