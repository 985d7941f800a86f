#include <cfloat>
#include <cmath>

#include "headshare/kernels/factorised_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {

int64_t FactorisedSizes::blocks() const { return (T + kTileQueries - 1) / kTileQueries; }

namespace {

// This is one block of queries for all heads, transposed as in attention_forward.cc: P0^T is the right side of
//   numerator_h^T += (w_h V_J)^T P0^T, denominator += w P0^T
template <typename Product>
class ForwardBlock {
 public:
  ForwardBlock(const FactorisedSizes& sizes, const AttentionRule& rule, const AttentionInputs<float>& in,
               HeadsView<float> out, const FactorisedState& state, const TileGemm& gemm, int64_t b, Scratch& scratch)
      : s_(sizes),
        rule_(rule),
        shared_(shared_rule(rule)),
        in_(in),
        out_(out),
        state_(state),
        gemm_(gemm),
        ops_{tiles(), gemm},
        b_(b),
        value_stride_(round_up(s_.S, kLaneStep)),
        query_(scratch.take<float>(s_.Dk * kTileQueries)),
        values_(scratch.take<float>(s_.Dv * value_stride_)),
        p0_(scratch.take<float>(kTileSize)),
        keep_(scratch.take<float>(kTileSize)),
        scaled_values_(scratch.take<float>(s_.Dv * kTileKeys)),
        weights_(scratch.take<Product>(Operands<Product>::packed_size(kTileSize, 1))),
        left_(scratch.take<Product>(Operands<Product>::packed_size(s_.Dv * kTileKeys, 1))),
        factors_(scratch.take<float>(s_.H * value_stride_)),
        numerator_(scratch.take<float>(s_.H * s_.Dv * kTileQueries)),
        denominator_(scratch.take<float>(s_.H * kTileQueries)),
        largest_(scratch.take<float>(s_.H)),
        m_(scratch.take<float>(kTileQueries)),
        l_(scratch.take<float>(kTileQueries)),
        fade_(scratch.take<float>(kTileQueries)),
        inverse_(scratch.take<float>(kTileQueries)),
        bias_(scratch.take<float>(kTileKeys)) {}

  void pack_values() {
    const int64_t length = visible_length(s_.by_head(), rule_, b_);
    t_.transpose(in_.value.at(b_, 0), in_.value.row, length, s_.Dv, values_, value_stride_);
  }

  void run(int64_t first, int64_t rows) {
    first_ = first;
    rows_ = rows;
    lanes_ = round_up(rows, kLaneStep);
    reachable_ = reachable_keys(s_.by_head(), rule_, b_, first + rows);
    std::fill(query_, query_ + s_.Dk * lanes_, 0.0F);
    t_.transpose(in_.query.at(b_, 0) + first * in_.query.row, in_.query.row, rows, s_.Dk, query_, lanes_);
    std::fill(m_, m_ + lanes_, -std::numeric_limits<float>::infinity());
    std::fill(l_, l_ + lanes_, 0.0F);
    if (reachable_ == 0) std::fill(denominator_, denominator_ + s_.H * kTileQueries, 0.0F);
    if (reachable_ == 0) std::fill(numerator_, numerator_ + s_.H * s_.Dv * kTileQueries, 0.0F);
    measure_keys();
    for (int64_t key = 0; key < reachable_; key += kTileKeys) tile(key, std::min(kTileKeys, reachable_ - key));
    for (int64_t h = 0; h < s_.H; ++h) finish(h);
    std::copy(m_, m_ + rows, state_.m + b_ * s_.T + first);
  }

 private:
  // Computes w_h of the keys that this block reaches, measured from the largest bias among them: measured from the
  // largest of the whole text, w would vanish where that key is out of reach.
  void measure_keys() {
    if (reachable_ == measured_) return;
    for (int64_t h = 0; h < s_.H; ++h) {
      float* z = factors(h);
      key_exponents(s_, rule_, b_, h, 0, reachable_, reachable_ - 1, z);
      float largest = -std::numeric_limits<float>::infinity();
      for (int64_t j = 0; j < reachable_; ++j) largest = std::max(largest, z[j]);
      largest_[h] = std::isinf(largest) ? 0 : largest;
      for (int64_t j = 0; j < reachable_; ++j) z[j] -= largest_[h];
      t_.exp2(z, reachable_, z);
    }
    measured_ = reachable_;
  }

  float* factors(int64_t h) const { return factors_ + h * value_stride_; }

  void tile(int64_t key, int64_t keys) {
    const Tile p0{p0_, kTileQueries, keys, lanes_};
    gemm_.f32(keys, lanes_, s_.Dk, in_.key.at(b_, 0) + key * in_.key.row, in_.key.row, query_, lanes_, p0_, p0.stride,
              /*accumulate=*/false);
    ScoreRule rule = tile_rule(s_.by_head(), shared_, b_, 0, first_, key, keys, bias_);
    rule.slack = kSlack;
    if (t_.softmax_step(p0, rule, m_, l_, fade_) && key > 0) {
      t_.scale_lanes({numerator_, kTileQueries, s_.H * s_.Dv, lanes_}, fade_);
      t_.scale_lanes({denominator_, kTileQueries, s_.H, lanes_}, fade_);
    }
    gemm_.f32(s_.H, lanes_, keys, factors_ + key, value_stride_, p0_, p0.stride, denominator_, kTileQueries, key > 0);
    if (rule_.dropout.active()) {
      t_.keep_tile(keep_, keys, lanes_, rule_.dropout, b_, 0, first_, key);
      t_.multiply(p0, keep_);
    }
    const RightSide<Product> weights = ops_.right_tile(p0, weights_);
    const Tile values{values_ + key, value_stride_, s_.Dv, round_up(keys, kLaneStep)};
    const Tile scaled{scaled_values_, kTileKeys, s_.Dv, values.lanes};
    for (int64_t h = 0; h < s_.H; ++h) {
      t_.scaled_lanes(values, factors(h) + key, scaled_values_, kTileKeys);
      if (keys % 2 == 1) {
        for (int64_t d = 0; d < s_.Dv; ++d) scaled_values_[d * kTileKeys + keys] = 0;  // half of a pair
      }
      ops_.product(s_.Dv, lanes_, keys, ops_.left_tile(scaled, left_), kTileKeys, weights,
                   numerator_ + h * s_.Dv * kTileQueries, kTileQueries, key > 0);
    }
  }

  // Divides, unless the denominator has come so near the smallest float that addends were flushed to
  // zero before it: then this head is left to the kernel that takes the maximum of the sum.
  void finish(int64_t h) {
    const float* l = denominator_ + h * kTileQueries;
    float* numerator = numerator_ + h * s_.Dv * kTileQueries;
    const float least = static_cast<float>(s_.S) * 0x1p24F * FLT_MIN;
    bool by_head = false;
    for (int64_t i = 0; i < lanes_; ++i) {
      const bool sees = m_[i] > -std::numeric_limits<float>::infinity();
      if (i < rows_ && sees && l[i] < least) by_head = true;
      inverse_[i] = sees ? 1 / l[i] : 0;
    }
    state_.by_head[(b_ * s_.H + h) * s_.blocks() + first_ / kTileQueries] = by_head;
    if (by_head) return;
    t_.scale_lanes({numerator, kTileQueries, s_.Dv, lanes_}, inverse_);
    t_.transpose(numerator, kTileQueries, s_.Dv, rows_, out_.at(b_, h) + first_ * out_.row, out_.row);
    float* lse = state_.lse + (b_ * s_.H + h) * s_.T + first_;
    for (int64_t i = 0; i < rows_; ++i) {
      const bool sees = m_[i] > -std::numeric_limits<float>::infinity();
      lse[i] = sees ? largest_[h] + std::log2(l[i]) : std::numeric_limits<float>::infinity();
    }
  }

  static constexpr int64_t kTileSize = kTileKeys * kTileQueries;
  static constexpr float kSlack = 8;  // as in attention_forward.cc

  const FactorisedSizes& s_;
  const AttentionRule& rule_;
  AttentionRule shared_;
  const AttentionInputs<float>& in_;
  HeadsView<float> out_;
  const FactorisedState& state_;
  const TileGemm& gemm_;
  const Operands<Product> ops_;
  const Tiles& t_ = tiles();
  int64_t b_, first_ = 0, rows_ = 0, lanes_ = 0, reachable_ = 0, measured_ = -1;
  const int64_t value_stride_;
  // These are pieces of the working memory that the thread keeps.
  float *query_, *values_, *p0_, *keep_, *scaled_values_;
  Product *weights_, *left_;  // P0 and w_h V as operands
  float *factors_, *numerator_, *denominator_, *largest_, *m_, *l_, *fade_, *inverse_, *bias_;
};

}  // namespace

template <typename Product>
void factorised_forward(const FactorisedSizes& s, const AttentionRule& rule, const AttentionInputs<float>& in,
                        HeadsView<float> out, const FactorisedState& state, const Machine& machine) {
  const int64_t parts = std::clamp<int64_t>((2 * machine.parallel.threads + s.B - 1) / s.B, 1, s.blocks());
  for_each_item(
      machine, s.B * parts,
      [&](int64_t item, Scratch& scratch) {
        return ForwardBlock<Product>(s, rule, in, out, state, *machine.gemm, item / parts, scratch);
      },
      [&](ForwardBlock<Product>& block, int64_t item) {
        block.pack_values();
        // An item takes every parts-th block: under a causal mask later blocks cost more.
        for (int64_t i = item % parts; i < s.blocks(); i += parts) {
          block.run(i * kTileQueries, std::min(kTileQueries, s.T - i * kTileQueries));
        }
      });
  const std::vector<WorkItem> left = left_by_head(s, state.by_head);
  if (!left.empty()) forward_items(left, s.by_head(), rule, in, out, state.lse, machine);
}

template void factorised_forward<float>(const FactorisedSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                        HeadsView<float>, const FactorisedState&, const Machine&);
template void factorised_forward<Bf16>(const FactorisedSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                       HeadsView<float>, const FactorisedState&, const Machine&);

}  // namespace headshare::kernels
