#include "headshare/ops/product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/gelu.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace {

// A packed panel of b, kDepth x kPanel, and kRows rows of a are 384 KiB each: both stay in a second-level cache of 1
// MiB or more. `headshare bench products` times what comes of it.
constexpr int64_t kPanel = 128;
constexpr int64_t kDepth = 768;
constexpr int64_t kRows = 128;
constexpr int64_t kTransposedDepth = 512;  // where a is packed too

// Floats of b that are packed at a time there.
constexpr int64_t kMostPacked = int64_t{1} << 22;

// Below this many multiply-adds packing costs more than it gains.
constexpr int64_t kLeastWork = int64_t{1} << 21;

template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;  // strides

  const T* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// target [rows, columns] (rows contiguous) = source at (i0, j0).
void pack(const Matrix<float>& source, int64_t i0, int64_t j0, int64_t rows, int64_t columns, float* target,
          int64_t stride) {
  if (source.column == 1) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(source.at(i0 + i, j0), columns, target + i * stride);
    return;
  }
  kernels::tiles().transpose(source.at(i0, j0), source.column, columns, rows, target, stride);
}

using Bf16 = at::BFloat16;

// A panel of b as the small-matrix kernels take it: float32 row by row,
void pack_panel(const Matrix<float>& b, int64_t k, int64_t j, int64_t depth, int64_t columns, float* target) {
  pack(b, k, j, depth, columns, target, kPanel);
}

// bfloat16 in pairs of rows, [depth / 2, kPanel, 2].
void pack_panel(const Matrix<Bf16>& b, int64_t k, int64_t j, int64_t depth, int64_t columns, Bf16* target) {
  if (b.row == 1) {  // a pair lies together and moves as one float
    const Matrix<float> pairs{reinterpret_cast<const float*>(b.at(k, j)), 1, b.column / 2};
    pack(pairs, 0, 0, depth / 2, columns, reinterpret_cast<float*>(target), kPanel);
    return;
  }
  for (int64_t i = 0; i < depth; i += 2) {
    const Bf16* upper = b.at(k + i, j);
    const Bf16* lower = b.at(k + i + 1, j);
    Bf16* to = target + i * kPanel;
    for (int64_t x = 0; x < columns; ++x) {
      to[2 * x] = upper[x];
      to[2 * x + 1] = lower[x];
    }
  }
}

// Rows i .. of a, whose columns are contiguous, with contiguous rows.
void pack_rows(const Matrix<float>& a, int64_t i, int64_t k, int64_t rows, int64_t depth, float* target) {
  pack(a, i, k, rows, depth, target, depth);
}

void pack_rows(const Matrix<Bf16>& a, int64_t i, int64_t k, int64_t rows, int64_t depth, Bf16* target) {
  constexpr int64_t kSide = 16;
  for (int64_t y0 = 0; y0 < rows; y0 += kSide) {
    const int64_t y_end = std::min(rows, y0 + kSide);
    for (int64_t x0 = 0; x0 < depth; x0 += kSide) {
      const int64_t x_end = std::min(depth, x0 + kSide);
      for (int64_t y = y0; y < y_end; ++y) {
        const Bf16* from = a.at(i + y, k + x0);
        Bf16* to = target + y * depth;
        for (int64_t x = x0; x < x_end; ++x, from += a.column) to[x] = *from;
      }
    }
  }
}

int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

// Work in `count` pieces keeps all threads busy when each is cut into this many.
int64_t cuts(int64_t count) {
  const int64_t threads = at::get_num_threads();
  return count % threads == 0 || count >= 8 * threads ? 1 : threads;
}

// Calls work(piece, begin, end) for `count` pieces, each cut along `length` in steps of `grain`.
template <class Work>
void in_parallel(int64_t count, int64_t length, int64_t grain, const Work& work) {
  const int64_t parts = std::min(cuts(count), std::max<int64_t>(1, length / grain));
  const int64_t part = blocks(blocks(length, parts), grain) * grain;
  at::parallel_for(0, count * parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t begin = item % parts * part;
      const int64_t end = std::min(length, begin + part);
      if (begin < end) work(item / parts, begin, end);
    }
    at::native::cpublas::brgemm_release();
  });
}

template <class T>
struct Product {
  Matrix<T> a, b;
  float* c;
  int64_t stride;  // of c's rows
  int64_t M, K, N;
  Into into;
  const float* row = nullptr;  // what c starts with, in every row
  std::optional<kernels::GeluForm> gelu_of_b = std::nullopt;
  const T* panels = nullptr;  // b, packed before

  void tile(int64_t rows, int64_t columns, int64_t depth, int64_t k, const T* a_tile, int64_t a_stride, const T* b_tile,
            int64_t b_stride, int64_t i, int64_t j) const {
    at::native::cpublas::brgemm(rows, columns, depth, a_stride, b_stride, stride, /*add_C=*/k > 0 || into == Into::kAdd,
                                a_tile, b_tile, c + i * stride + j,
                                /*is_vnni=*/!std::is_same_v<T, float>);
  }

  // Rows of a are contiguous: a panel of b is packed, then meets all rows; all panels of one depth before the next, so
  // that this part of a is read from memory once.
  void by_panels() const {
    for (int64_t k = 0; k < K; k += kDepth) {
      const int64_t depth = std::min(kDepth, K - k);
      in_parallel(blocks(N, kPanel), M, kRows, [&](int64_t panel, int64_t begin, int64_t end) {
        const int64_t j = panel * kPanel;
        const int64_t columns = std::min(kPanel, N - j);
        std::unique_ptr<T[]> packed;
        if (panels == nullptr) {
          packed = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(depth * kPanel));
          pack_panel(b, k, j, depth, columns, packed.get());
        }
        const T* const b_tile = panels == nullptr ? packed.get() : panels + (panel * K + k) * kPanel;
        for (int64_t i = begin; i < end; i += kRows) {
          const int64_t rows = std::min(kRows, end - i);
          for (int64_t y = 0; row != nullptr && k == 0 && y < rows; ++y) {
            std::copy_n(row + j, columns, c + (i + y) * stride + j);
          }
          tile(rows, columns, depth, k, a.at(i, k), a.row, b_tile, kPanel, i, j);
        }
      });
    }
  }

  // A panel of a slab; gelu() of it while it is in a cache.
  void pack_slab_panel(int64_t k, int64_t j, int64_t depth, T* target) const {
    const int64_t columns = std::min(kPanel, N - j);
    pack_panel(b, k, j, depth, columns, target);
    if constexpr (std::is_same_v<T, float>) {
      for (int64_t i = 0; gelu_of_b && i < depth; ++i) {
        float* values = target + i * kPanel;
        kernels::passes().gelu(values, columns, *gelu_of_b, values);
      }
    }
  }

  // Columns of a are contiguous (the gradient of a weight): a slab of b is packed, then every block of a's
  // rows is packed and meets it.
  void by_row_blocks() const {
    const int64_t panels = blocks(N, kPanel);
    const int64_t most = kMostPacked / (panels * kPanel) / kTransposedDepth * kTransposedDepth;
    const int64_t slab_depth = std::min(K, std::max(kTransposedDepth, most));
    const auto slab = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(slab_depth * panels * kPanel));
    for (int64_t k = 0; k < K; k += slab_depth) {
      const int64_t depth = std::min(slab_depth, K - k);
      in_parallel(panels, 1, 1, [&](int64_t panel, int64_t, int64_t) {
        pack_slab_panel(k, panel * kPanel, depth, slab.get() + panel * kPanel * depth);
      });
      in_parallel(blocks(M, kRows), panels, 1, [&](int64_t block, int64_t begin, int64_t end) {
        row_block(block * kRows, k, depth, slab.get(), begin, end);
      });
    }
  }

  // Rows i .. of c, columns of panels begin .. end, += a from column k times a packed slab of b.
  void row_block(int64_t i, int64_t k, int64_t slab_depth, const T* slab, int64_t begin, int64_t end) const {
    const auto packed = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(kRows * kTransposedDepth));
    const int64_t rows = std::min(kRows, M - i);
    for (int64_t part = 0; part < slab_depth; part += kTransposedDepth) {
      const int64_t depth = std::min(kTransposedDepth, slab_depth - part);
      pack_rows(a, i, k + part, rows, depth, packed.get());
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t j = panel * kPanel;
        const T* b_tile = slab + (panel * slab_depth + part) * kPanel;
        tile(rows, std::min(kPanel, N - j), depth, k + part, packed.get(), depth, b_tile, kPanel, i, j);
      }
    }
  }
};

// Whether the small-matrix kernels work here.
bool has_small_kernels(bool bf16) {
  static const bool found[] = {tile_gemm_name(/*bf16=*/false) == "brgemm", tile_gemm_name(/*bf16=*/true) == "brgemm"};
  return found[bf16 ? 1 : 0];
}

// Pairs of rows must be whole and, where they lie together, at addresses of floats.
bool in_pairs(const Tensor& b) {
  return b.size(0) % 2 == 0 && (b.stride(1) == 1 || (b.stride(1) % 2 == 0 && b.storage_offset() % 2 == 0));
}

bool is_blocked(at::ScalarType type, const Tensor& c, int64_t M, int64_t K, int64_t N) {
  if (!c.device().is_cpu() || c.scalar_type() != at::kFloat) return false;
  if (std::min({M, K, N}) < 16 || M * K * N < kLeastWork) return false;
  if (type == at::kBFloat16) return has_small_kernels(/*bf16=*/true);
  return type == at::kFloat && has_small_kernels(/*bf16=*/false);
}

template <class T>
Product<T> product(const Tensor& a, const Tensor& b, const Tensor& c, Into into) {
  return {.a = {a.const_data_ptr<T>(), a.stride(0), a.stride(1)},
          .b = {b.const_data_ptr<T>(), b.stride(0), b.stride(1)},
          .c = c.mutable_data_ptr<float>(),
          .stride = c.stride(0),
          .M = a.size(0),
          .K = a.size(1),
          .N = b.size(1),
          .into = into};
}

bool is_blocked(const Tensor& a, const Tensor& b, const Tensor& c) {
  HS_DCHECK(a.size(1) == b.size(0) && c.size(0) == a.size(0) && c.size(1) == b.size(1) && c.stride(1) == 1);
  const bool known = (a.stride(0) == 1 || a.stride(1) == 1) && (b.stride(0) == 1 || b.stride(1) == 1);
  const bool paired = a.scalar_type() == at::kFloat || in_pairs(b);
  return known && paired && is_blocked(a.scalar_type(), c, a.size(0), a.size(1), b.size(1));
}

template <class T>
void multiply_in_blocks(const Product<T>& product) {
  product.a.column == 1 ? product.by_panels() : product.by_row_blocks();
}

}  // namespace

bool multiplies_in_blocks(const Tensor& like, int64_t M, int64_t K, int64_t N) {
  return is_blocked(like.scalar_type(), like, M, K, N);
}

void multiply(const Tensor& a, const Tensor& b, const Tensor& c, Into into) {
  if (is_blocked(a, b, c)) {
    if (a.scalar_type() == at::kFloat) return multiply_in_blocks(product<float>(a, b, c, into));
    return multiply_in_blocks(product<Bf16>(a, b, c, into));
  }
  Tensor out = c;
  if (a.scalar_type() != c.scalar_type()) {
    into == Into::kAdd ? out.add_(at::mm(a, b)) : out.copy_(at::mm(a, b));
  } else {
    into == Into::kAdd ? out.addmm_(a, b) : at::mm_out(out, a, b);
  }
}

void multiply_add_row(const Tensor& a, const Tensor& b, const Tensor& row, const Tensor& c) {
  const bool started = is_blocked(a, b, c) && a.scalar_type() == at::kFloat && a.stride(1) == 1 && row.is_contiguous();
  if (!started) {
    c.copy_(row.expand_as(c));
    multiply(a, b, c, Into::kAdd);
    return;
  }
  Product<float> sum = product<float>(a, b, c, Into::kAdd);
  sum.row = row.const_data_ptr<float>();  // while a tile of c is at hand
  sum.by_panels();
}

Tensor pack_panels(const Tensor& b) {
  HS_DCHECK(b.device().is_cpu() && b.scalar_type() == at::kFloat && (b.stride(0) == 1 || b.stride(1) == 1));
  const int64_t K = b.size(0), N = b.size(1);
  Tensor panels = at::empty({blocks(N, kPanel), K, kPanel}, b.options());
  float* const target = panels.mutable_data_ptr<float>();
  const Matrix<float> source{b.const_data_ptr<float>(), b.stride(0), b.stride(1)};
  in_parallel(panels.size(0), 1, 1, [&](int64_t panel, int64_t, int64_t) {
    const int64_t j = panel * kPanel;
    pack_panel(source, 0, j, K, std::min(kPanel, N - j), target + panel * K * kPanel);
  });
  return panels;
}

void multiply_packed(const Tensor& a, const Tensor& panels, const Tensor& row, const Tensor& c) {
  HS_DCHECK(multiplies_in_blocks(a, a.size(0), a.size(1), c.size(1)) && a.stride(1) == 1 && c.stride(1) == 1);
  HS_DCHECK(panels.size(0) == blocks(c.size(1), kPanel) && panels.size(1) == a.size(1));
  Product<float> sum = {.a = {a.const_data_ptr<float>(), a.stride(0), 1},
                        .b = {},
                        .c = c.mutable_data_ptr<float>(),
                        .stride = c.stride(0),
                        .M = a.size(0),
                        .K = a.size(1),
                        .N = c.size(1),
                        .into = row.defined() ? Into::kAdd : Into::kReplace};
  if (row.defined()) sum.row = row.const_data_ptr<float>();
  sum.panels = panels.const_data_ptr<float>();
  sum.by_panels();
}

void multiply_gelu(const Tensor& a, const Tensor& b, kernels::GeluForm form, const Tensor& c) {
  if (!is_blocked(a, b, c) || a.scalar_type() != at::kFloat || a.stride(0) != 1) {
    return multiply(a, gelu_values(b, form), c);
  }
  Product<float> packed = product<float>(a, b, c, Into::kReplace);
  packed.gelu_of_b = form;
  packed.by_row_blocks();
}

}  // namespace headshare
