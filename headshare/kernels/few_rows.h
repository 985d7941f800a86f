// Multiplies a few rows by a large matrix, as decoding does at each token. Memory limits such a product: each weight is
// read once and used a few times. MKL, which is made for many rows, reads them at a third of the speed
// (docs/design/062). It is serial; whoever calls it divides the outputs among threads.
#pragma once

#include <cstdint>

namespace headshare::kernels {

// With more rows than these a product in blocks is as fast.
constexpr int64_t kMostFewRows = 8;

// FewRows is the product of rows x [rows, depth] and a matrix [outputs, depth]; both have contiguous rows.
struct FewRows {
  const float* x;
  int64_t x_stride;
  int64_t rows;  // at most kMostFewRows
  int64_t depth;
  const float* matrix;
  int64_t matrix_stride;
  const float* bias;  // [outputs], or null
  float* y;           // [rows, outputs]
  int64_t y_stride;
};

// Computes y[r, o] = sum over k of x[r, k] matrix[o, k] + bias[o] for the outputs first, ..., last - 1. The order of
// the sum depends on the depth alone: a row has the same bits alone and among others. force_tiles_target() of tiles.h
// holds here, too.
void multiply_few_rows(const FewRows& product, int64_t first, int64_t last);

}  // namespace headshare::kernels
