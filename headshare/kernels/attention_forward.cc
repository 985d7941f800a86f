#include <cmath>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {
namespace {

// Everything is transposed: a tile of scores is K_J Q_I^T, so that queries lie along the lanes of a
// vector. Maxima and sums over keys then need no work across lanes, what belongs to a key (bias,
// padding) is one number a row, and the weights are the right side of out^T += V_J^T weights as they lie.
template <typename T>
class ForwardItem {
 public:
  ForwardItem(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in, HeadsView<T> out,
              float* lse, const Operands<T>& ops, Scratch& scratch)
      : s_(sizes),
        rule_(rule),
        in_(in),
        out_(out),
        lse_(lse),
        ops_(ops),
        value_stride_(round_up(s_.S, kLaneStep)),
        query_(scratch.take<T>(s_.Dk * kTileQueries)),
        values_(scratch.take<T>(s_.Dv * value_stride_)),
        scores_(scratch.take<float>(kTileSize)),
        keep_(scratch.take<float>(kTileSize)),
        weights_(scratch.take<T>(Operands<T>::packed_size(kTileSize, 1))),
        result_(scratch.take<float>(s_.Dv * kTileQueries)),
        rows_(scratch.take<float>(s_.Dv * kTileQueries)),
        m_(scratch.take<float>(kTileQueries)),
        l_(scratch.take<float>(kTileQueries)),
        fade_(scratch.take<float>(kTileQueries)),
        inverse_(scratch.take<float>(kTileQueries)),
        bias_(scratch.take<float>(kTileKeys)) {}

  void run(const WorkItem& item) {
    int64_t packed = -1;  // the value head whose transpose is in values_
    for (const QueryBlock& queries : item.blocks) {
      const int64_t value_head = queries.head * s_.Hv / s_.H;
      if (value_head != packed) pack_values(item, value_head);
      packed = value_head;
      block(item.b, queries.head, queries.first, queries.rows);
    }
  }

 private:
  void pack_values(const WorkItem& item, int64_t value_head) {
    const int64_t keys = reachable_keys(s_, rule_, item.b, item.last_query);
    ops_.left_transposed(in_.value.at(item.b, value_head), in_.value.row, keys, s_.Dv, values_, value_stride_);
    for (int64_t d = 0; d < s_.Dv; ++d) {
      std::fill(values_ + d * value_stride_ + keys, values_ + (d + 1) * value_stride_, T{});
    }
  }

  void block(int64_t b, int64_t h, int64_t first, int64_t rows) {
    const int64_t lanes = round_up(rows, kLaneStep);
    const int64_t reachable = reachable_keys(s_, rule_, b, first + rows);
    const auto query = ops_.right_transposed(in_.query.at(b, h * s_.Hq / s_.H) + first * in_.query.row, in_.query.row,
                                             rows, s_.Dk, lanes, query_);
    std::fill(m_, m_ + kTileQueries, -std::numeric_limits<float>::infinity());
    std::fill(l_, l_ + kTileQueries, 0.0F);
    if (reachable == 0) std::fill(result_, result_ + s_.Dv * kTileQueries, 0.0F);
    for (int64_t key = 0; key < reachable; key += kTileKeys) {
      tile(b, h, first, key, {scores_, kTileQueries, std::min(kTileKeys, reachable - key), lanes}, query);
    }
    finish(b, h, first, rows, lanes);
  }

  void tile(int64_t b, int64_t h, int64_t first, int64_t key, const Tile& scores, const RightSide<T>& query) {
    ops_.product(scores.keys, scores.lanes, s_.Dk, in_.key.at(b, h * s_.Hk / s_.H) + key * in_.key.row, in_.key.row,
                 query, scores.data, scores.stride, /*accumulate=*/false);
    ScoreRule rule = tile_rule(s_, rule_, b, h, first, key, scores.keys, bias_);
    rule.slack = kSlack;
    const bool moved = ops_.t.softmax_step(scores, rule, m_, l_, fade_);
    if (moved && key > 0) ops_.t.scale_lanes({result_, kTileQueries, s_.Dv, scores.lanes}, fade_);
    if (rule_.dropout.active()) {
      ops_.t.keep_tile(keep_, scores.keys, scores.lanes, rule_.dropout, b, h, first, key);
      ops_.t.multiply(scores, keep_);
    }
    ops_.product(s_.Dv, scores.lanes, scores.keys, values_ + key, value_stride_, ops_.right_tile(scores, weights_),
                 result_, kTileQueries, /*accumulate=*/key > 0);
  }

  void finish(int64_t b, int64_t h, int64_t first, int64_t rows, int64_t lanes) {
    for (int64_t i = 0; i < lanes; ++i) {
      if (l_[i] != 0) l_[i] += sink_weight(rule_, h, m_[i]);
      inverse_[i] = l_[i] == 0 ? 0 : 1 / l_[i];
    }
    ops_.t.scale_lanes({result_, kTileQueries, s_.Dv, lanes}, inverse_);
    ops_.t.transpose(result_, kTileQueries, s_.Dv, rows, rows_, s_.Dv);
    ops_.store(rows_, s_.Dv, rows, s_.Dv, out_.at(b, h) + first * out_.row, out_.row);
    for (int64_t i = 0; i < rows; ++i) {
      lse_[(b * s_.H + h) * s_.T + first + i] =
          l_[i] == 0 ? std::numeric_limits<float>::infinity() : m_[i] + std::log2(l_[i]);
    }
  }

  // Weights may grow to 2^8 before the running maximum moves: rescaling becomes rare and nothing is
  // lost, as float has the exponents.
  static constexpr int64_t kTileSize = kTileKeys * kTileQueries;
  static constexpr float kSlack = 8;

  const AttentionSizes& s_;
  const AttentionRule& rule_;
  const AttentionInputs<T>& in_;
  HeadsView<T> out_;
  float* lse_;
  const Operands<T>& ops_;
  const int64_t value_stride_;
  // These are pieces of the working memory that the thread keeps.
  T *query_, *values_;
  float *scores_, *keep_;
  T* weights_;
  float *result_, *rows_, *m_, *l_, *fade_, *inverse_, *bias_;
};

}  // namespace

template <typename T>
void forward_items(const std::vector<WorkItem>& items, const AttentionSizes& sizes, const AttentionRule& rule,
                   const AttentionInputs<T>& in, HeadsView<T> out, float* lse, const Machine& machine) {
  const Operands<T> ops{tiles(), *machine.gemm};
  for_each_item(
      machine, static_cast<int64_t>(items.size()),
      [&](int64_t, Scratch& scratch) { return ForwardItem<T>(sizes, rule, in, out, lse, ops, scratch); },
      [&](ForwardItem<T>& kernel, int64_t i) { kernel.run(items[static_cast<size_t>(i)]); });
}

template <typename T>
void attention_forward(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
                       HeadsView<T> out, float* lse, const Machine& machine) {
  forward_items(plan_items(sizes, machine.parallel.threads), sizes, rule, in, out, lse, machine);
}

template void forward_items<float>(const std::vector<WorkItem>&, const AttentionSizes&, const AttentionRule&,
                                   const AttentionInputs<float>&, HeadsView<float>, float*, const Machine&);
template void attention_forward<float>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                       HeadsView<float>, float*, const Machine&);
template void attention_forward<Bf16>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<Bf16>&,
                                      HeadsView<Bf16>, float*, const Machine&);

}  // namespace headshare::kernels
