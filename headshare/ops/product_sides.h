// The small-matrix kernels take the two sides of a product in these forms: product.cc cuts matrices into them.
//
// A form of sides packs blocks of depth `depth` so that they are deep(depth) deep. `Given` is what matrices hold and
// `Packed` what the kernels read.
#pragma once

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "headshare/kernels/halves.h"
#include "headshare/kernels/passes.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/tensor_memory.h"

namespace headshare {

template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;  // strides, one of which is 1

  const T* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// This is a block of b: rows k .., columns j ...
struct PanelBlock {
  int64_t k, j, depth, columns;
  std::optional<kernels::GeluForm> gelu = std::nullopt;  // packed is gelu(b)
};

// This is a block of a, whose columns are contiguous: rows i .., columns k ...
struct RowsBlock {
  int64_t i, k, rows, depth;
};

// Writes target [rows, columns] = source at (i, j).
inline void pack(const Matrix<float>& source, int64_t i, int64_t j, int64_t rows, int64_t columns, float* target,
                 int64_t stride) {
  if (source.column == 1) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(source.at(i + r, j), columns, target + r * stride);
    return;
  }
  kernels::tiles().transpose(source.at(i, j), source.column, columns, rows, target, stride);
}

// Returns room for `count` numbers, at the start of a cache line: AMX loads lines, and takes up to three times as long
// for what lies across two.
template <class T>
std::shared_ptr<T> room_for(int64_t count) {
  return std::static_pointer_cast<T>(working_memory(static_cast<size_t>(count) * sizeof(T)));
}

// These sides are float32 as it is. A packed panel of b, kDepth x kPanel, and 128 rows of a are 384 KiB each: both stay
// in a second-level cache of 1 MiB or more. `headshare bench products` times what comes of it.
struct FloatSides {
  using Given = float;
  using Packed = float;
  static constexpr bool kInPairs = false;          // of rows, as bfloat16 kernels take b
  static constexpr bool kTakesRows = true;         // of a where they lie, if they are contiguous
  static constexpr int64_t kRows = 128;            // of a at a time
  static constexpr int64_t kPanel = 128;           // columns of a packed block of b
  static constexpr int64_t kDepth = 768;           // of a panel that is packed at a time
  static constexpr int64_t kPart = 768;            // of it that is multiplied at a time
  static constexpr int64_t kTransposedPart = 512;  // the same where a is packed too
  static int64_t deep(int64_t depth) { return depth; }

  static void panel(const Matrix<float>& b, const PanelBlock& block, float* target, int64_t stride = kPanel) {
    pack(b, block.k, block.j, block.depth, block.columns, target, stride);
    for (int64_t i = 0; block.gelu && i < block.depth; ++i) {
      kernels::passes().gelu(target + i * stride, block.columns, *block.gelu, target + i * stride);
    }
  }

  static void rows(const Matrix<float>& a, const RowsBlock& block, float* target) {
    pack(a, block.i, block.k, block.rows, block.depth, target, block.depth);
  }
};

// These sides are bfloat16, b in pairs of rows [depth / 2, kPanel, 2]. The depth of a product is even.
struct Bf16Sides {
  using Given = at::BFloat16;
  using Packed = at::BFloat16;
  static constexpr bool kInPairs = true;
  static constexpr bool kTakesRows = true;
  static constexpr int64_t kRows = 256;
  static constexpr int64_t kPanel = 256;
  static constexpr int64_t kDepth = 768;
  static constexpr int64_t kPart = 768;
  static constexpr int64_t kTransposedPart = 512;
  static int64_t deep(int64_t depth) { return depth; }

  static void panel(const Matrix<Given>& b, const PanelBlock& block, Packed* target) {
    if (b.row == 1) {  // a pair lies together and moves as one float
      const Matrix<float> pairs{reinterpret_cast<const float*>(b.at(block.k, block.j)), 1, b.column / 2};
      pack(pairs, 0, 0, block.depth / 2, block.columns, reinterpret_cast<float*>(target), kPanel);
      return;
    }
    kernels::tiles().pairs(reinterpret_cast<const kernels::Bf16*>(b.at(block.k, block.j)), b.row, block.depth,
                           block.columns, reinterpret_cast<kernels::Bf16*>(target), kPanel);
  }

  // Packs two rows of a^T in pairs, whose pairs are then transposed.
  static void rows(const Matrix<Given>& a, const RowsBlock& block, Packed* target) {
    const auto pairs = room_for<float>(block.depth / 2 * block.rows);
    kernels::tiles().pairs(reinterpret_cast<const kernels::Bf16*>(a.at(block.i, block.k)), a.column, block.depth,
                           block.rows, reinterpret_cast<kernels::Bf16*>(pairs.get()), block.rows);
    kernels::tiles().transpose(pairs.get(), block.rows, block.depth / 2, block.rows, reinterpret_cast<float*>(target),
                               block.depth / 2);
  }
};

// These sides are float32 as two halves in bfloat16 (kernels/halves.h), three times as deep: a product that is three. A
// panel, kDepth x kPanel, is 768 KiB and the rows that meet it 384 KiB: AMX has 2 MiB of second-level cache, and waits
// for memory beyond.
struct HalfSides {
  using Given = float;
  using Packed = at::BFloat16;
  static constexpr bool kInPairs = true;
  static constexpr bool kTakesRows = false;
  static constexpr int64_t kRows = 128;
  static constexpr int64_t kPanel = 256;
  static constexpr int64_t kDepth = 512;
  static constexpr int64_t kPart = 256;
  static constexpr int64_t kTransposedPart = 256;
  static int64_t deep(int64_t depth) { return kernels::depth_in_halves(depth); }

  static void panel(const Matrix<float>& b, const PanelBlock& block, Packed* target) {
    auto* const to = reinterpret_cast<kernels::Bf16*>(target);
    if (b.column == 1 && !block.gelu) {
      kernels::halves().right(b.at(block.k, block.j), b.row, block.depth, block.columns, to, kPanel);
      return;
    }
    const auto floats = room_for<float>(block.depth * kPanel);
    FloatSides::panel(b, block, floats.get(), kPanel);
    kernels::halves().right(floats.get(), kPanel, block.depth, block.columns, to, kPanel);
  }

  static void rows(const Matrix<float>& a, const RowsBlock& block, Packed* target) {
    auto* const to = reinterpret_cast<kernels::Bf16*>(target);
    const int64_t stride = deep(block.depth);
    if (a.column == 1) {
      kernels::halves().left(a.at(block.i, block.k), a.row, block.rows, block.depth, to, stride);
      return;
    }
    const auto floats = room_for<float>(block.rows * block.depth);
    FloatSides::rows(a, block, floats.get());
    kernels::halves().left(floats.get(), block.depth, block.rows, block.depth, to, stride);
  }
};

}  // namespace headshare
