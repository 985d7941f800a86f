// Prepares the operands of tile products in either type: floats are used where they lie, bf16 right sides are packed in
// pairs of rows as TileGemm wants them.
#pragma once

#include "headshare/kernels/gemm.h"
#include "headshare/kernels/scratch.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {

// This is the right side of a product; `stride` counts columns.
template <typename T>
struct RightSide {
  const T* data;
  int64_t stride;
};

template <typename T>
struct Operands;

template <>
struct Operands<float> {
  const Tiles& t;
  const TileGemm& gemm;

  static constexpr bool kPacked = false;
  static int64_t packed_size(int64_t, int64_t) { return 0; }

  void product(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, RightSide<float> B, float* C, int64_t ldc,
               bool accumulate) const {
    gemm.f32(M, N, K, A, lda, B.data, B.stride, C, ldc, accumulate);
  }
  // Returns x [K, N] as a right side.
  RightSide<float> right(const float* x, int64_t stride, int64_t, int64_t, float*) const { return {x, stride}; }
  // Returns the transpose of x [N, K] as a right side [K, N] in `room` of K rows of `lanes`; lanes beyond N are zero.
  RightSide<float> right_transposed(const float* x, int64_t stride, int64_t N, int64_t K, int64_t lanes,
                                    float* room) const {
    if (N < lanes) std::fill(room, room + K * lanes, 0.0F);
    t.transpose(x, stride, N, K, room, lanes);
    return {room, lanes};
  }
  // Each returns a float tile, as a right side and as a left side.
  RightSide<float> right_tile(const Tile& x, float*) const { return {x.data, x.stride}; }
  const float* left_tile(const Tile& x, float*) const { return x.data; }
  // Writes the transpose of x [rows, columns] as a left side [columns, rows], in rows of `out_stride`.
  void left_transposed(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out,
                       int64_t out_stride) const {
    t.transpose(x, stride, rows, columns, out, out_stride);
  }
  // Computes what Tiles::dots does.
  void dots(const float* x, int64_t stride, const float* y, int64_t y_stride, int64_t rows, int64_t width,
            float* out) const {
    t.dots(x, stride, y, y_stride, rows, width, out);
  }
  // Stores floats as the type of the tensors.
  void store(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out, int64_t out_stride) const {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * out_stride, x + r * stride, columns * sizeof(float));
  }
};

template <>
struct Operands<Bf16> {
  const Tiles& t;
  const TileGemm& gemm;

  static constexpr bool kPacked = true;
  static int64_t packed_size(int64_t K, int64_t N) { return round_up(K, 2) * N; }

  // K is rounded up to whole pairs: the right side's zero row silences what the left side has there.
  void product(int64_t M, int64_t N, int64_t K, const Bf16* A, int64_t lda, RightSide<Bf16> B, float* C, int64_t ldc,
               bool accumulate) const {
    gemm.bf16(M, N, round_up(K, 2), A, lda, B.data, B.stride, C, ldc, accumulate);
  }
  RightSide<Bf16> right(const Bf16* x, int64_t stride, int64_t K, int64_t N, Bf16* room) const {
    t.pairs(x, stride, K, N, room, N);
    return {room, N};
  }
  // K is even: a pair of neighbours in a row of x is one 32-bit value, and pairs are transposed whole.
  RightSide<Bf16> right_transposed(const Bf16* x, int64_t stride, int64_t N, int64_t K, int64_t lanes,
                                   Bf16* room) const {
    if (N < lanes) std::fill(room, room + K * lanes, Bf16{0});
    if (stride % 2 == 0) {
      t.transpose(reinterpret_cast<const float*>(x), stride / 2, N, K / 2, reinterpret_cast<float*>(room), lanes);
    } else {
      for (int64_t n = 0; n < N; ++n) {
        t.transpose(reinterpret_cast<const float*>(x + n * stride), 0, 1, K / 2, reinterpret_cast<float*>(room + 2 * n),
                    lanes);
      }
    }
    return {room, lanes};
  }
  RightSide<Bf16> right_tile(const Tile& x, Bf16* room) const {
    t.narrow_pairs(x.data, x.stride, x.keys, x.lanes, room, x.lanes);
    return {room, x.lanes};
  }
  const Bf16* left_tile(const Tile& x, Bf16* room) const {
    t.narrow(x.data, x.stride, x.keys, x.lanes, room, x.stride);
    return room;
  }
  void left_transposed(const Bf16* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out,
                       int64_t out_stride) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) out[c * out_stride + r] = x[r * stride + c];
    }
  }
  void dots(const Bf16* x, int64_t stride, const Bf16* y, int64_t y_stride, int64_t rows, int64_t width,
            float* out) const {
    t.dots_bf16(x, stride, y, y_stride, rows, width, out);
  }
  void store(const float* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride) const {
    t.narrow(x, stride, rows, columns, out, out_stride);
  }
};

}  // namespace headshare::kernels
