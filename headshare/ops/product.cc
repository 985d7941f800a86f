#include "headshare/ops/product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/ops/gelu.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/product_sides.h"
#include "headshare/ops/tile_gemm.h"

namespace headshare {
namespace {

// So many bytes of b, a slab, are packed at a time where a is packed too. The product is read and written once for each
// slab, which is cheap where the slab is kSlabOverProduct times as large; so a small model packs little.
constexpr int64_t kLeastPacked = int64_t{1} << 18, kMostPacked = int64_t{1} << 24;
constexpr int64_t kSlabOverProduct = 16;

// Below this many multiply-adds packing costs more than it gains.
constexpr int64_t kLeastWork = int64_t{1} << 21;

int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

// Returns into how many parts each of `count` pieces is cut so that all threads are busy.
int64_t cuts(int64_t count) {
  const int64_t threads = at::get_num_threads();
  return count % threads == 0 || count >= 8 * threads ? 1 : threads;
}

// Calls work(piece, begin, end) for `count` pieces, each cut along `length` in steps of `grain`.
template <class Work>
void in_parallel(int64_t count, int64_t length, int64_t grain, const Work& work) {
  const int64_t parts = std::min(cuts(count), std::max<int64_t>(1, length / grain));
  const int64_t part = blocks(blocks(length, parts), grain) * grain;
  in_torch_threads(count * parts, [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t begin = item % parts * part;
      const int64_t end = std::min(length, begin + part);
      if (begin < end) work(item / parts, begin, end);
    }
    at::native::cpublas::brgemm_release();
  });
}

// This is a product whose sides are packed as Sides says.
template <class Sides>
struct Product {
  using Given = typename Sides::Given;
  using Packed = typename Sides::Packed;

  Matrix<Given> a, b;
  float* c;
  int64_t stride;  // of c's rows
  int64_t M, K, N;
  Into into;
  const float* row = nullptr;  // what c starts with, in every row
  std::optional<kernels::GeluForm> gelu_of_b = std::nullopt;
  const Packed* panels = nullptr;  // b, packed before

  void tile(int64_t rows, int64_t columns, int64_t depth, int64_t k, const Packed* a_tile, int64_t a_stride,
            const Packed* b_tile, int64_t i, int64_t j) const {
    at::native::cpublas::brgemm(rows, columns, Sides::deep(depth), a_stride, Sides::kPanel, stride,
                                /*add_C=*/k > 0 || into == Into::kAdd, a_tile, b_tile, c + i * stride + j,
                                /*is_vnni=*/Sides::kInPairs);
  }

  // Rows of a are contiguous: a panel of b is packed, then meets all rows; all panels of one depth before the next, so
  // that this part of a is read from memory once.
  void by_panels() const {
    std::shared_ptr<Packed> room;
    if constexpr (!Sides::kTakesRows) room = room_for<Packed>(M * Sides::deep(std::min(Sides::kDepth, K)));
    for (int64_t k = 0; k < K; k += Sides::kDepth) {
      const int64_t depth = std::min(Sides::kDepth, K - k);
      pack_left(k, depth, room.get());
      in_parallel(blocks(N, Sides::kPanel), M, Sides::kRows, [&](int64_t panel, int64_t begin, int64_t end) {
        const int64_t j = panel * Sides::kPanel;
        std::shared_ptr<Packed> packed;
        if (panels == nullptr) {
          packed = room_for<Packed>(Sides::deep(depth) * Sides::kPanel);
          pack_panel(k, j, depth, Sides::kPart, packed.get());
        }
        const Packed* const b_panel =
            panels == nullptr ? packed.get() : panels + (panel * Sides::deep(K) + Sides::deep(k)) * Sides::kPanel;
        for (int64_t i = begin; i < end; i += Sides::kRows)
          meet({.i = i, .j = j, .k = k, .depth = depth}, room.get(), b_panel);
      });
    }
  }

  // A block of c is kRows x kPanel, with the depth that is added to it.
  struct Block {
    int64_t i, j, k, depth;
  };

  // Adds rows of a times a packed panel, part by part while the block is in the cache.
  void meet(const Block& block, const Packed* left, const Packed* b_panel) const {
    const int64_t rows = std::min(Sides::kRows, M - block.i);
    const int64_t columns = std::min(Sides::kPanel, N - block.j);
    for (int64_t y = 0; row != nullptr && block.k == 0 && y < rows; ++y) {
      std::copy_n(row + block.j, columns, c + (block.i + y) * stride + block.j);
    }
    for (int64_t part = 0; part < block.depth; part += Sides::kPart) {
      const int64_t depth = std::min(Sides::kPart, block.depth - part);
      const Packed* const b_tile = b_panel + Sides::deep(part) * Sides::kPanel;
      if constexpr (Sides::kTakesRows) {
        tile(rows, columns, depth, block.k + part, a.at(block.i, block.k + part), a.row, b_tile, block.i, block.j);
      } else {
        const int64_t deep = Sides::deep(depth);
        const Packed* const a_tile = left + M * Sides::deep(part) + block.i * deep;
        tile(rows, columns, depth, block.k + part, a_tile, deep, b_tile, block.i, block.j);
      }
    }
  }

  // Packs the columns k .. of a, each part as a matrix [M, deep] behind the one before; nothing where rows are taken as
  // they lie.
  void pack_left(int64_t k, int64_t depth, Packed* room) const {
    if constexpr (!Sides::kTakesRows) {
      in_parallel(blocks(M, Sides::kRows), 1, 1, [&](int64_t block, int64_t, int64_t) {
        const int64_t i = block * Sides::kRows;
        for (int64_t part = 0; part < depth; part += Sides::kPart) {
          const RowsBlock one{.i = i,
                              .k = k + part,
                              .rows = std::min(Sides::kRows, M - i),
                              .depth = std::min(Sides::kPart, depth - part)};
          Sides::rows(a, one, room + M * Sides::deep(part) + i * Sides::deep(one.depth));
        }
      });
    }
  }

  // Packs the columns j .. of b, from row k on, in parts that meet parts of a.
  void pack_panel(int64_t k, int64_t j, int64_t depth, int64_t step, Packed* target) const {
    for (int64_t part = 0; part < depth; part += step) {
      const PanelBlock block{.k = k + part,
                             .j = j,
                             .depth = std::min(step, depth - part),
                             .columns = std::min(Sides::kPanel, N - j),
                             .gelu = gelu_of_b};
      Sides::panel(b, block, target + Sides::deep(part) * Sides::kPanel);
    }
  }

  // Columns of a are contiguous (the gradient of a weight): a slab of b is packed, then every block of a's
  // rows is packed and meets it.
  void by_row_blocks() const {
    const int64_t panels = blocks(N, Sides::kPanel);
    constexpr int64_t kPart = Sides::kTransposedPart;
    const int64_t part_bytes = panels * Sides::kPanel * Sides::deep(kPart) * static_cast<int64_t>(sizeof(Packed));
    const int64_t wanted = std::clamp(kSlabOverProduct * M * N * int64_t{sizeof(float)}, kLeastPacked, kMostPacked);
    const int64_t slab_depth = std::min(K, std::max<int64_t>(1, wanted / part_bytes) * kPart);
    const auto slab = room_for<Packed>(Sides::deep(slab_depth) * panels * Sides::kPanel);
    for (int64_t k = 0; k < K; k += slab_depth) {
      const int64_t depth = std::min(slab_depth, K - k);
      in_parallel(panels, 1, 1, [&](int64_t panel, int64_t, int64_t) {
        pack_panel(k, panel * Sides::kPanel, depth, Sides::kTransposedPart,
                   slab.get() + panel * Sides::kPanel * Sides::deep(depth));
      });
      in_parallel(blocks(M, Sides::kRows), panels, 1, [&](int64_t block, int64_t begin, int64_t end) {
        row_block(block * Sides::kRows, k, depth, slab.get(), begin, end);
      });
    }
  }

  // Adds to the rows i .. of c, columns of panels begin .. end, a from column k times a packed slab of b.
  void row_block(int64_t i, int64_t k, int64_t slab_depth, const Packed* slab, int64_t begin, int64_t end) const {
    const auto packed = room_for<Packed>(Sides::kRows * Sides::deep(Sides::kTransposedPart));
    const int64_t rows = std::min(Sides::kRows, M - i);
    for (int64_t part = 0; part < slab_depth; part += Sides::kTransposedPart) {
      const int64_t depth = std::min(Sides::kTransposedPart, slab_depth - part);
      Sides::rows(a, {.i = i, .k = k + part, .rows = rows, .depth = depth}, packed.get());
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t j = panel * Sides::kPanel;
        const Packed* b_tile = slab + (panel * Sides::deep(slab_depth) + Sides::deep(part)) * Sides::kPanel;
        tile(rows, std::min(Sides::kPanel, N - j), depth, k + part, packed.get(), Sides::deep(depth), b_tile, i, j);
      }
    }
  }

  void run() const { a.column == 1 ? by_panels() : by_row_blocks(); }
};

// Tells whether the small-matrix kernels work here.
bool has_small_kernels(bool bf16) {
  static const bool found[] = {tile_gemm_name(/*bf16=*/false) == "brgemm", tile_gemm_name(/*bf16=*/true) == "brgemm"};
  return found[bf16 ? 1 : 0];
}

// Tells whether b can be taken in pairs of rows: these must be whole and, where they lie together, at addresses of
// floats.
bool in_pairs(const Tensor& b) {
  return b.size(0) % 2 == 0 && (b.stride(1) == 1 || (b.stride(1) % 2 == 0 && b.storage_offset() % 2 == 0));
}

bool is_blocked(at::ScalarType type, const Tensor& c, int64_t M, int64_t K, int64_t N) {
  if (!c.device().is_cpu() || c.scalar_type() != at::kFloat) return false;
  if (std::min({M, K, N}) < 16 || M * K * N < kLeastWork) return false;
  if (type == at::kBFloat16) return has_small_kernels(/*bf16=*/true);
  return type == at::kFloat && has_small_kernels(/*bf16=*/false);
}

bool is_blocked(const Tensor& a, const Tensor& b, const Tensor& c) {
  HS_DCHECK(a.size(1) == b.size(0) && c.size(0) == a.size(0) && c.size(1) == b.size(1) && c.stride(1) == 1);
  const bool known = (a.stride(0) == 1 || a.stride(1) == 1) && (b.stride(0) == 1 || b.stride(1) == 1);
  const bool paired = a.scalar_type() == at::kFloat || in_pairs(b);
  return known && paired && is_blocked(a.scalar_type(), c, a.size(0), a.size(1), b.size(1));
}

template <class T>
Matrix<T> matrix(const Tensor& x) {
  return {x.const_data_ptr<T>(), x.stride(0), x.stride(1)};
}

template <class Sides>
Product<Sides> product(const Tensor& a, const Tensor& b, const Tensor& c, Into into) {
  using T = typename Sides::Given;
  return {.a = matrix<T>(a),
          .b = matrix<T>(b),
          .c = c.mutable_data_ptr<float>(),
          .stride = c.stride(0),
          .M = a.size(0),
          .K = a.size(1),
          .N = b.size(1),
          .into = into};
}

// Calls run(Product<..>()), a product of float32 matrices in the form that `products` says.
template <class Run>
void with_float_sides(FloatProducts products, const Run& run) {
  const bool halves = products == FloatProducts::kBf16x3 && has_small_kernels(/*bf16=*/true);
  halves ? run(HalfSides()) : run(FloatSides());
}

}  // namespace

FloatProducts float_products_in_use() {
  return ComputeIn::current(at::kCPU) == Precision::kBf16x3 ? FloatProducts::kBf16x3 : FloatProducts::kFp32;
}

bool multiplies_in_blocks(const Tensor& like, int64_t M, int64_t K, int64_t N) {
  return is_blocked(like.scalar_type(), like, M, K, N);
}

void multiply(const Tensor& a, const Tensor& b, const Tensor& c, Into into, FloatProducts products) {
  if (is_blocked(a, b, c)) {
    if (a.scalar_type() == at::kBFloat16) return product<Bf16Sides>(a, b, c, into).run();
    return with_float_sides(products, [&](auto sides) { product<decltype(sides)>(a, b, c, into).run(); });
  }
  Tensor out = c;
  if (a.scalar_type() != c.scalar_type()) {
    into == Into::kAdd ? out.add_(at::mm(a, b)) : out.copy_(at::mm(a, b));
  } else {
    into == Into::kAdd ? out.addmm_(a, b) : at::mm_out(out, a, b);
  }
}

void multiply_add_row(const Tensor& a, const Tensor& b, const Tensor& row, const Tensor& c, FloatProducts products) {
  const bool started = is_blocked(a, b, c) && a.scalar_type() == at::kFloat && a.stride(1) == 1 && row.is_contiguous();
  if (!started) {
    c.copy_(row.expand_as(c));
    multiply(a, b, c, Into::kAdd, products);
    return;
  }
  with_float_sides(products, [&](auto sides) {
    auto sum = product<decltype(sides)>(a, b, c, Into::kAdd);
    sum.row = row.const_data_ptr<float>();  // while a tile of c is at hand
    sum.by_panels();
  });
}

Tensor pack_panels(const Tensor& b, FloatProducts products) {
  HS_DCHECK(b.device().is_cpu() && b.scalar_type() == at::kFloat && (b.stride(0) == 1 || b.stride(1) == 1));
  const int64_t K = b.size(0), N = b.size(1);
  Tensor panels;
  with_float_sides(products, [&](auto sides) {
    using Sides = decltype(sides);
    using Packed = typename Sides::Packed;
    const int64_t deep = Sides::deep(K);
    panels = at::empty({blocks(N, Sides::kPanel), deep, Sides::kPanel},
                       b.options().dtype(c10::CppTypeToScalarType<Packed>::value));
    auto* const target = panels.template mutable_data_ptr<Packed>();
    Product<Sides> whole{.a = {}, .b = matrix<float>(b), .c = nullptr, .stride = 0, .M = 0, .K = K, .N = N, .into = {}};
    in_parallel(panels.size(0), 1, 1, [&](int64_t panel, int64_t, int64_t) {
      whole.pack_panel(0, panel * Sides::kPanel, K, Sides::kPart, target + panel * deep * Sides::kPanel);
    });
  });
  return panels;
}

void multiply_packed(const Tensor& a, const Tensor& panels, const Tensor& row, const Tensor& c) {
  HS_DCHECK(multiplies_in_blocks(a, a.size(0), a.size(1), c.size(1)) && a.stride(1) == 1 && c.stride(1) == 1);
  const auto run = [&](auto sides) {
    using Sides = decltype(sides);
    HS_DCHECK(panels.size(0) == blocks(c.size(1), Sides::kPanel) && panels.size(1) == Sides::deep(a.size(1)));
    Product<Sides> sum = {.a = matrix<float>(a),
                          .b = {},
                          .c = c.mutable_data_ptr<float>(),
                          .stride = c.stride(0),
                          .M = a.size(0),
                          .K = a.size(1),
                          .N = c.size(1),
                          .into = row.defined() ? Into::kAdd : Into::kReplace};
    if (row.defined()) sum.row = row.const_data_ptr<float>();
    sum.panels = panels.const_data_ptr<typename Sides::Packed>();
    sum.by_panels();
  };
  panels.scalar_type() == at::kBFloat16 ? run(HalfSides()) : run(FloatSides());
}

void multiply_gelu(const Tensor& a, const Tensor& b, kernels::GeluForm form, const Tensor& c, FloatProducts products) {
  if (!is_blocked(a, b, c) || a.scalar_type() != at::kFloat || a.stride(0) != 1) {
    return multiply(a, gelu_values(b, form), c, Into::kReplace, products);
  }
  with_float_sides(products, [&](auto sides) {
    auto packed = product<decltype(sides)>(a, b, c, Into::kReplace);
    packed.gelu_of_b = form;
    packed.by_row_blocks();
  });
}

}  // namespace headshare
