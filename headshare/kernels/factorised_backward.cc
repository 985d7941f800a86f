#include <cmath>
#include <limits>
#include <memory>

#include "headshare/kernels/factorised_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {
namespace {

// This is delta_h[i] = dO_h[i] . O_h[i], for all items.
struct Deltas {
  int64_t stride;  // of a head: whole blocks of queries
  std::shared_ptr<void> memory;
  float* data;  // [B, H, stride], zeros beyond the queries
};

Deltas measure_deltas(const FactorisedSizes& s, HeadsView<const float> out, HeadsView<const float> gradient,
                      const Machine& machine) {
  const int64_t stride = round_up(s.T, kTileQueries);
  const std::shared_ptr<void> memory = machine.allocate(static_cast<size_t>(s.B * s.H * stride) * sizeof(float));
  Deltas deltas{stride, memory, static_cast<float*>(memory.get())};
  machine.parallel.run(s.B * s.blocks(), [&](int64_t i, int64_t) {
    const int64_t b = i / s.blocks();
    const int64_t first = i % s.blocks() * kTileQueries;
    const int64_t rows = std::min(kTileQueries, s.T - first);
    for (int64_t h = 0; h < s.H; ++h) {
      float* delta = deltas.data + (b * s.H + h) * stride + first;
      tiles().dots(gradient.at(b, h) + first * gradient.row, gradient.row, out.at(b, h) + first * out.row, out.row,
                   rows, s.Dv, delta);
      std::fill(delta + rows, delta + kTileQueries, 0.0F);
    }
  });
  return deltas;
}

// Turns z into w = 2^(z - the largest z), zero for hidden keys. Returns the largest z: minus infinity when all are
// hidden, so that e_h is zero there; measured from any number it could overflow.
float key_factors(const Tiles& t, int64_t keys, float* z) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t j = 0; j < keys; ++j) largest = std::max(largest, z[j]);
  const float origin = std::isinf(largest) ? 0 : largest;
  for (int64_t j = 0; j < keys; ++j) z[j] -= origin;
  t.exp2(z, keys, z);
  return largest;
}

// An item takes blocks of keys of one sentence, each against all the queries that reach it. With
//   e_h[i] = 2^(c_h - lse_h[i]), c_h the largest bias among these keys, lse relative to m,
//   G_h = e_h dO_h, g_h = -e_h delta_h,
//   dP0^T = keep sum_h (w_h V) G_h^T + sum_h w_h g_h^T
//   dVW_h += (P0^T keep) G_h, dw_h += P0^T g_h,  dS^T = scale P0^T dP0^T,  dK += dS^T Q, dQ += dS K
// and at the end dV = sum_h w_h dVW_h, d key_bias_h = scale w_h (dVW_h . V + dw_h).
template <typename Product>
class BackwardItem {
 public:
  BackwardItem(const FactorisedSizes& sizes, const AttentionRule& rule, const AttentionInputs<float>& in,
               const FactorisedState& state, const Deltas& deltas, HeadsView<const float> gradient,
               const AttentionGradients<float>& out, const TileGemm& gemm, int64_t b, float* query_gradient,
               Scratch& scratch)
      : s_(sizes),
        rule_(rule),
        shared_(shared_rule(rule)),
        in_(in),
        state_(state),
        deltas_(deltas),
        gradient_(gradient),
        out_(out),
        gemm_(gemm),
        ops_{tiles(), gemm},
        b_(b),
        query_gradient_(query_gradient),
        heads_(round_up(s_.H, kLaneStep)),
        p0_(scratch.take<float>(kTileSize)),
        change_(scratch.take<float>(kTileSize)),
        keep_(scratch.take<float>(kTileSize)),
        turned_(scratch.take<float>(kTileSize)),
        query_(scratch.take<float>(s_.Dk * kTileQueries)),
        values_(scratch.take<float>(s_.Dv * kTileKeys)),
        scaled_(scratch.take<float>(s_.Dv * kTileQueries)),
        scaled_values_(scratch.take<float>(s_.H * s_.Dv * kTileKeys)),
        weights_(scratch.take<Product>(Operands<Product>::packed_size(kTileSize, 1))),
        left_(scratch.take<Product>(Operands<Product>::packed_size(kTileQueries * s_.Dv, 1))),
        right_(scratch.take<Product>(Operands<Product>::packed_size(kTileQueries, s_.Dv))),
        packed_(scratch.take<Product>(s_.H * packed_values())),
        right_values_(scratch.take<RightSide<Product>>(s_.H)),
        value_sums_(scratch.take<float>(kTileKeys * s_.H * s_.Dv)),
        factor_sums_(scratch.take<float>(kTileKeys * heads_)),
        factors_by_key_(scratch.take<float>(kTileKeys * heads_)),
        factors_(scratch.take<float>(s_.H * kTileKeys)),
        own_t_(scratch.take<float>(heads_ * kTileQueries)),
        own_(scratch.take<float>(heads_ * kTileQueries)),
        largest_(scratch.take<float>(s_.H)),
        m_(scratch.take<float>(kTileQueries)),
        e_(scratch.take<float>(s_.H * kTileQueries)),
        zero_(scratch.take<float>(kTileQueries)),
        bias_(scratch.take<float>(kTileKeys)),
        products_(scratch.take<float>(kTileKeys)) {}

  void run(int64_t key, int64_t keys) {
    key_ = key;
    keys_ = keys;
    std::fill(zero_, zero_ + kTileQueries, 0.0F);
    measure_keys();
    for (int64_t h = 0; h < s_.H; ++h) std::fill(value_sums(h), value_sums(h) + keys * s_.Dv, 0.0F);
    std::fill(factor_sums_, factor_sums_ + keys * heads_, 0.0F);
    for (int64_t r = 0; r < keys; ++r) {
      std::fill(key_row(r), key_row(r) + s_.Dk, 0.0F);
    }
    const int64_t first = rule_.causal ? std::max<int64_t>(0, key - (s_.S - s_.T)) / kTileQueries * kTileQueries : 0;
    for (int64_t block = first; block < s_.T; block += kTileQueries) {
      const int64_t rows = std::min(kTileQueries, s_.T - block);
      // Where key and query blocks end together this is all or nothing; hidden keys have no factor.
      if (reachable_keys(s_.by_head(), rule_, b_, block + rows) > key) queries(block, rows);
    }
    finish();
  }

 private:
  // Returns the sum over queries of (P0^T keep) G_h, [keys, Dv]. A head's rows lie together: rows of all heads would be
  // 4 H Dv bytes apart and share few sets of the first cache.
  float* value_sums(int64_t h) const { return value_sums_ + h * kTileKeys * s_.Dv; }

  float* value_row(int64_t r) const { return out_.value.at(b_, 0) + (key_ + r) * out_.value.row; }

  float* key_row(int64_t r) const { return out_.key.at(b_, 0) + (key_ + r) * out_.key.row; }

  int64_t packed_values() const { return Operands<Product>::packed_size(s_.Dv, kTileKeys); }

  // Computes w_h [H, keys] measured from the largest of these keys, the same by key [keys, H], and w_h V as every block
  // of queries reads it.
  void measure_keys() {
    std::fill(factors_by_key_, factors_by_key_ + keys_ * heads_, 0.0F);
    const int64_t lanes = round_up(keys_, kLaneStep);
    if (keys_ < lanes) std::fill(values_, values_ + s_.Dv * kTileKeys, 0.0F);
    t_.transpose(in_.value.at(b_, 0) + key_ * in_.value.row, in_.value.row, keys_, s_.Dv, values_, kTileKeys);
    for (int64_t h = 0; h < s_.H; ++h) {
      float* factors = factors_ + h * kTileKeys;
      key_exponents(s_, rule_, b_, h, key_, keys_, key_ + keys_ - 1, factors);
      largest_[h] = key_factors(t_, keys_, factors);
      std::fill(factors + keys_, factors + lanes, 0.0F);
      for (int64_t j = 0; j < keys_; ++j) factors_by_key_[j * heads_ + h] = factors[j];
      float* scaled = scaled_values_ + h * s_.Dv * kTileKeys;
      t_.scaled_lanes({values_, kTileKeys, s_.Dv, lanes}, factors, scaled, kTileKeys);
      right_values_[h] = ops_.right_tile({scaled, kTileKeys, s_.Dv, keys_}, packed_ + h * packed_values());
    }
  }

  void queries(int64_t first, int64_t rows) {
    const int64_t lanes = round_up(rows, kLaneStep);
    const float* query = in_.query.at(b_, 0) + first * in_.query.row;
    const Tile p0{p0_, kTileQueries, keys_, lanes};
    const Tile change{change_, kTileQueries, keys_, lanes};
    recompute(query, first, rows, p0);
    measure_rows(first, rows, lanes);
    // The denominator's part comes first: dropout does not touch it.
    gemm_.f32(keys_, heads_, rows, p0_, kTileQueries, own_, heads_, factor_sums_, heads_, true);
    const bool drops = rule_.dropout.active();
    if (drops) t_.multiply(p0, keep_);
    const Product* weights = ops_.left_tile(p0, weights_);
    for (int64_t h = 0; h < s_.H; ++h) values_change(h, first, rows, weights);
    if (rows < lanes) std::fill(change_, change_ + keys_ * kTileQueries, 0.0F);
    t_.transpose(turned_, kTileKeys, rows, keys_, change_, kTileQueries);
    if (drops) t_.multiply(change, keep_);
    gemm_.f32(keys_, lanes, s_.H, factors_by_key_, heads_, own_t_, kTileQueries, change_, kTileQueries, true);
    // dS is proportional to the undropped weights.
    if (drops) recompute(query, first, rows, p0);
    t_.score_gradients(p0, change, nullptr, zero_, rule_.scale, nullptr);
    gemm_.f32(keys_, s_.Dk, rows, change_, kTileQueries, query, in_.query.row, key_row(0), out_.key.row, true);
    t_.transpose(change_, kTileQueries, keys_, rows, turned_, kTileKeys);
    gemm_.f32(rows, s_.Dk, keys_, turned_, kTileKeys, in_.key.at(b_, 0) + key_ * in_.key.row, in_.key.row,
              query_gradient_ + first * s_.Dk, s_.Dk, true);
  }

  // Computes P0^T of these keys and queries.
  void recompute(const float* query, int64_t first, int64_t rows, const Tile& p0) {
    std::fill(query_, query_ + s_.Dk * p0.lanes, 0.0F);
    t_.transpose(query, in_.query.row, rows, s_.Dk, query_, p0.lanes);
    // A query that sees nothing has m = -inf: it and the lanes without a query get weight zero.
    std::fill(m_, m_ + p0.lanes, std::numeric_limits<float>::infinity());
    for (int64_t i = 0; i < rows; ++i) {
      const float m = state_.m[b_ * s_.T + first + i];
      if (!std::isinf(m)) m_[i] = m;
    }
    gemm_.f32(keys_, p0.lanes, s_.Dk, in_.key.at(b_, 0) + key_ * in_.key.row, in_.key.row, query_, p0.lanes, p0.data,
              p0.stride, false);
    t_.weights(p0, tile_rule(s_.by_head(), shared_, b_, 0, first, key_, keys_, bias_), m_);
  }

  // Writes g_h = -e_h delta_h of these queries into own_t_ [H, lanes] and own_ [lanes, H], and the mask of dropout.
  void measure_rows(int64_t first, int64_t rows, int64_t lanes) {
    if (rule_.dropout.active()) t_.keep_tile(keep_, keys_, lanes, rule_.dropout, b_, 0, first, key_);
    std::fill(own_t_, own_t_ + heads_ * kTileQueries, 0.0F);
    for (int64_t h = 0; h < s_.H; ++h) {
      const float* e = scale_of_rows(h, first, rows, lanes);
      const float* delta = deltas_.data + (b_ * s_.H + h) * deltas_.stride + first;
      for (int64_t i = 0; i < lanes; ++i) own_t_[h * kTileQueries + i] = -e[i] * delta[i];
    }
    t_.transpose(own_t_, kTileQueries, heads_, rows, own_, heads_);
  }

  // Returns e_h, zero for queries that see nothing and for blocks that were computed head by head.
  const float* scale_of_rows(int64_t h, int64_t first, int64_t rows, int64_t lanes) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    float* e = e_ + h * kTileQueries;
    std::fill(e, e + lanes, kNever);
    if (!state_.by_head[(b_ * s_.H + h) * s_.blocks() + first / kTileQueries]) {
      const float slope = rule_.alibi_slopes == nullptr ? 0 : rule_.alibi_slopes[h] * kLog2e;
      const int64_t origin = reachable_keys(s_.by_head(), rule_, b_, first + rows) - 1;  // as in the forward pass
      const float moved = largest_[h] + slope * static_cast<float>(key_ + keys_ - 1 - origin);
      const float* lse = state_.lse + (b_ * s_.H + h) * s_.T + first;
      for (int64_t i = 0; i < rows; ++i) e[i] = std::isinf(m_[i]) ? kNever : moved - lse[i];
    }
    t_.exp2(e, lanes, e);
    return e;
  }

  // `weights` is P0^T keep. dP0 is summed as [queries, keys] and turned once for all heads: so G_h serves both products
  // as it is read.
  void values_change(int64_t h, int64_t first, int64_t rows, const Product* weights) {
    const Tile scaled{scaled_, s_.Dv, rows, s_.Dv};
    t_.scaled_rows(gradient_.at(b_, h) + first * gradient_.row, gradient_.row, rows, s_.Dv, e_ + h * kTileQueries,
                   scaled_, s_.Dv, /*accumulate=*/false);
    ops_.product(keys_, s_.Dv, rows, weights, kTileQueries, ops_.right_tile(scaled, right_), value_sums(h), s_.Dv,
                 /*accumulate=*/true);
    ops_.product(rows, keys_, s_.Dv, ops_.left_tile(scaled, left_), s_.Dv, right_values_[h], turned_, kTileKeys,
                 /*accumulate=*/h > 0);
  }

  void finish() {
    for (int64_t j = 0; j < keys_; ++j) std::fill(value_row(j), value_row(j) + s_.Dv, 0.0F);
    const float* value = in_.value.at(b_, 0) + key_ * in_.value.row;
    for (int64_t h = 0; h < s_.H; ++h) {
      const float* w = factors_ + h * kTileKeys;
      t_.scaled_rows(value_sums(h), s_.Dv, keys_, s_.Dv, w, value_row(0), out_.value.row, /*accumulate=*/true);
      if (out_.key_bias == nullptr) continue;
      t_.dots(value_sums(h), s_.Dv, value, in_.value.row, keys_, s_.Dv, products_);
      float* bias = out_.key_bias + (b_ * s_.H + h) * s_.S + key_;
      for (int64_t j = 0; j < keys_; ++j) bias[j] = rule_.scale * w[j] * (factor_sums_[j * heads_ + h] + products_[j]);
    }
  }

  static constexpr int64_t kTileSize = kTileKeys * kTileQueries;

  const FactorisedSizes& s_;
  const AttentionRule& rule_;
  AttentionRule shared_;
  const AttentionInputs<float>& in_;
  const FactorisedState& state_;
  const Deltas& deltas_;
  HeadsView<const float> gradient_;
  const AttentionGradients<float>& out_;
  const TileGemm& gemm_;
  const Operands<Product> ops_;
  const Tiles& t_ = tiles();
  int64_t b_, key_ = 0, keys_ = 0;
  float* query_gradient_;  // [T, Dk]
  const int64_t heads_;    // in whole lanes
  // These are pieces of the working memory that the thread keeps.
  float *p0_, *change_, *keep_, *turned_, *query_, *values_, *scaled_, *scaled_values_;
  Product *weights_, *left_, *right_, *packed_;  // P0^T, G_h, G_h and (w_h V)^T as operands
  RightSide<Product>* right_values_;             // (w_h V)^T of each head
  float *value_sums_, *factor_sums_, *factors_by_key_, *factors_, *own_t_, *own_, *largest_, *m_, *e_, *zero_, *bias_,
      *products_;
};

// Returns where the blocks of keys end: under a causal mask with the blocks of queries, so that a block of queries
// reaches a block of keys wholly or not at all, and biases beyond its reach cannot overflow.
std::vector<int64_t> key_block_ends(const FactorisedSizes& s, bool causal) {
  std::vector<int64_t> ends;
  const int64_t step = causal ? kTileQueries : kTileKeys;
  int64_t end = causal ? (s.S - s.T) % step : 0;
  if (end <= 0) end += step;
  for (; end < s.S; end += step) ends.push_back(end);
  ends.push_back(s.S);
  return ends;
}

void add(const FactorisedSizes& s, int64_t rows, int64_t width, const float* from, HeadsView<float> to) {
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = to.at(b, 0) + r * to.row;
      for (int64_t d = 0; d < width; ++d) row[d] += from[(b * rows + r) * width + d];
    }
  }
}

// Adds the gradients of the blocks that were left to the kernel that goes head by head.
void add_left(const std::vector<WorkItem>& left, const FactorisedSizes& s, const AttentionRule& rule,
              const AttentionInputs<float>& in, HeadsView<const float> out, const float* lse,
              HeadsView<const float> out_gradient, const AttentionGradients<float>& gradients, const Machine& machine) {
  std::vector<float> query(static_cast<size_t>(s.B * s.T * s.Dk)), key(static_cast<size_t>(s.B * s.S * s.Dk)),
      value(static_cast<size_t>(s.B * s.S * s.Dv)), bias(static_cast<size_t>(s.B * s.H * s.S));
  backward_items<float>(left, s.by_head(), rule, in, out, lse, out_gradient,
                        {{query.data(), s.T * s.Dk, 0, s.Dk},
                         {key.data(), s.S * s.Dk, 0, s.Dk},
                         {value.data(), s.S * s.Dv, 0, s.Dv},
                         gradients.key_bias == nullptr ? nullptr : bias.data()},
                        machine);
  add(s, s.T, s.Dk, query.data(), gradients.query);
  add(s, s.S, s.Dk, key.data(), gradients.key);
  add(s, s.S, s.Dv, value.data(), gradients.value);
  for (size_t i = 0; gradients.key_bias != nullptr && i < bias.size(); ++i) gradients.key_bias[i] += bias[i];
}

}  // namespace

template <typename Product>
void factorised_backward(const FactorisedSizes& s, const AttentionRule& rule, const AttentionInputs<float>& in,
                         HeadsView<const float> out, const FactorisedState& state, HeadsView<const float> out_gradient,
                         const AttentionGradients<float>& gradients, const Machine& machine) {
  const Deltas deltas = measure_deltas(s, out, out_gradient, machine);
  const std::vector<int64_t> ends = key_block_ends(s, rule.causal);
  const auto blocks = static_cast<int64_t>(ends.size());
  const int64_t parts = std::clamp<int64_t>((2 * machine.parallel.threads + s.B - 1) / s.B, 1, blocks);
  // The gradients of queries have one sum for each item.
  const int64_t size = s.T * s.Dk;
  const std::shared_ptr<void> sums_memory = machine.allocate(static_cast<size_t>(s.B * parts * size) * sizeof(float));
  auto* sums = static_cast<float*>(sums_memory.get());
  for_each_item(
      machine, s.B * parts,
      [&](int64_t i, Scratch& scratch) {
        return BackwardItem<Product>(s, rule, in, state, deltas, out_gradient, gradients, *machine.gemm, i / parts,
                                     sums + i * size, scratch);
      },
      [&](BackwardItem<Product>& item, int64_t i) {
        std::fill(sums + i * size, sums + (i + 1) * size, 0.0F);
        for (int64_t block = i % parts; block < blocks; block += parts) {
          const int64_t begin = block == 0 ? 0 : ends[static_cast<size_t>(block - 1)];
          item.run(begin, ends[static_cast<size_t>(block)] - begin);
        }
      });
  machine.parallel.run(s.B, [&](int64_t b, int64_t) {
    float* total = sums + b * parts * size;
    for (int64_t part = 1; part < parts; ++part) {
      for (int64_t j = 0; j < size; ++j) total[j] += total[part * size + j];
    }
    for (int64_t t = 0; t < s.T; ++t) {
      std::copy(total + t * s.Dk, total + (t + 1) * s.Dk, gradients.query.at(b, 0) + t * gradients.query.row);
    }
  });
  const std::vector<WorkItem> left = left_by_head(s, state.by_head);
  if (!left.empty()) add_left(left, s, rule, in, out, state.lse, out_gradient, gradients, machine);
}

template void factorised_backward<float>(const FactorisedSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                         HeadsView<const float>, const FactorisedState&, HeadsView<const float>,
                                         const AttentionGradients<float>&, const Machine&);
template void factorised_backward<Bf16>(const FactorisedSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                        HeadsView<const float>, const FactorisedState&, HeadsView<const float>,
                                        const AttentionGradients<float>&, const Machine&);

}  // namespace headshare::kernels
