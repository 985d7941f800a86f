#include <optional>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"
#include "headshare/kernels/partial_sums.h"

namespace headshare::kernels {
namespace {

template <typename T>
struct BackwardProblem {
  const AttentionSizes& s;
  const AttentionRule& rule;
  const AttentionInputs<T>& in;
  HeadsView<const T> out;
  const float* lse;
  HeadsView<const T> out_gradient;
};

// The items leave their gradients in these sums.
template <typename T>
struct BackwardSums {
  PartialSums<T> query, key, value;
  std::optional<PartialSums<float>> key_bias;  // rows are keys, one value wide; none: not wanted
};

// An item takes, for its heads, blocks of queries against blocks of keys, transposed as in the forward pass.
//   P^T = 2^(K Q^T ... - lse), dP^T = V dO^T, dS^T = scale P^T (dP^T keep - delta), delta_i = dO_i . O_i
//   dV += (P^T keep) dO, dK += dS^T Q, dQ += dS K
template <typename T>
class BackwardItem {
 public:
  BackwardItem(const BackwardProblem<T>& problem, BackwardSums<T>& sums, const Operands<T>& ops, size_t index,
               const WorkItem& item, Scratch& scratch)
      : p_(problem),
        s_(problem.s),
        sums_(sums),
        ops_(ops),
        index_(index),
        item_(item),
        query_(scratch.take<T>(s_.Dk * kTileQueries)),
        gradient_(scratch.take<T>(s_.Dv * kTileQueries)),
        query_rows_(scratch.take<T>(Operands<T>::packed_size(s_.Dk * kTileQueries, 1))),
        gradient_rows_(scratch.take<T>(Operands<T>::packed_size(s_.Dv * kTileQueries, 1))),
        keys_(scratch.take<T>(Operands<T>::packed_size(round_up(s_.S, kTileKeys), s_.Dk))),
        left_(scratch.take<T>(Operands<T>::packed_size(kTileSize, 1))),
        left_transposed_(scratch.take<T>(Operands<T>::packed_size(kTileSize, 1))),
        weights_(scratch.take<float>(kTileSize)),
        score_gradients_(scratch.take<float>(kTileSize)),
        keep_(scratch.take<float>(kTileSize)),
        transposed_(scratch.take<float>(kTileSize)),
        lse_(scratch.take<float>(kTileQueries)),
        delta_(scratch.take<float>(kTileQueries)),
        bias_(scratch.take<float>(kTileKeys)) {}

  void run() {
    sums_.query.clear(index_);
    sums_.key.clear(index_);
    sums_.value.clear(index_);
    if (sums_.key_bias) sums_.key_bias->clear(index_);
    for (const QueryBlock& queries : item_.blocks) {
      pack_keys(queries.head);
      block(queries.head, queries.first, queries.rows);
    }
  }

 private:
  // Keys are the right side of dQ. They are packed once an item, tile by tile.
  void pack_keys(int64_t h) {
    const int64_t head = h * s_.Hk / s_.H;
    if (!Operands<T>::kPacked || head == packed_head_) return;
    packed_head_ = head;
    const int64_t reachable = reachable_keys(s_, p_.rule, item_.b, item_.last_query);
    for (int64_t key = 0; key < reachable; key += kTileKeys) {
      ops_.right(p_.in.key.at(item_.b, head) + key * p_.in.key.row, p_.in.key.row, std::min(kTileKeys, reachable - key),
                 s_.Dk, keys_ + key * s_.Dk);
    }
  }

  RightSide<T> key_rows(int64_t h, int64_t key) const {
    if (Operands<T>::kPacked) return {keys_ + key * s_.Dk, s_.Dk};
    return {p_.in.key.at(item_.b, h * s_.Hk / s_.H) + key * p_.in.key.row, p_.in.key.row};
  }

  void block(int64_t h, int64_t first, int64_t rows) {
    const int64_t lanes = round_up(rows, kLaneStep);
    const int64_t reachable = reachable_keys(s_, p_.rule, item_.b, first + rows);
    if (reachable == 0) return;
    const T* query = p_.in.query.at(item_.b, h * s_.Hq / s_.H) + first * p_.in.query.row;
    const T* gradient = p_.out_gradient.at(item_.b, h) + first * p_.out_gradient.row;
    query_t_ = ops_.right_transposed(query, p_.in.query.row, rows, s_.Dk, lanes, query_);
    gradient_t_ = ops_.right_transposed(gradient, p_.out_gradient.row, rows, s_.Dv, lanes, gradient_);
    query_right_ = ops_.right(query, p_.in.query.row, rows, s_.Dk, query_rows_);
    gradient_right_ = ops_.right(gradient, p_.out_gradient.row, rows, s_.Dv, gradient_rows_);
    // Lanes without a query get the weight zero: they are summed over.
    std::fill(lse_, lse_ + lanes, std::numeric_limits<float>::infinity());
    std::fill(delta_, delta_ + lanes, 0.0F);
    const T* out = p_.out.at(item_.b, h) + first * p_.out.row;
    ops_.dots(gradient, p_.out_gradient.row, out, p_.out.row, rows, s_.Dv, delta_);
    const float* lse = p_.lse + (item_.b * s_.H + h) * s_.T + first;
    std::copy(lse, lse + rows, lse_);
    for (int64_t key = 0; key < reachable; key += kTileKeys) {
      tile(h, first, rows, key, std::min(kTileKeys, reachable - key), lanes);
    }
  }

  void tile(int64_t h, int64_t first, int64_t rows, int64_t key, int64_t keys, int64_t lanes) {
    const int64_t b = item_.b;
    const int64_t key_head = h * s_.Hk / s_.H;
    const int64_t value_head = h * s_.Hv / s_.H;
    const Tile weights{weights_, kTileQueries, keys, lanes};
    const Tile gradients{score_gradients_, kTileQueries, keys, lanes};
    ops_.product(keys, lanes, s_.Dk, p_.in.key.at(b, key_head) + key * p_.in.key.row, p_.in.key.row, query_t_, weights_,
                 kTileQueries, /*accumulate=*/false);
    ops_.product(keys, lanes, s_.Dv, p_.in.value.at(b, value_head) + key * p_.in.value.row, p_.in.value.row,
                 gradient_t_, score_gradients_, kTileQueries, /*accumulate=*/false);
    ops_.t.weights(weights, tile_rule(s_, p_.rule, b, h, first, key, keys, bias_), lse_);
    const DropoutMask& dropout = p_.rule.dropout;
    if (dropout.active()) ops_.t.keep_tile(keep_, keys, lanes, dropout, b, h, first, key);
    ops_.t.score_gradients(weights, gradients, dropout.active() ? keep_ : nullptr, delta_, p_.rule.scale,
                           sums_.key_bias ? sums_.key_bias->row(index_, h, key) : nullptr);
    ops_.product(keys, s_.Dv, rows, ops_.left_tile(weights, left_), kTileQueries, gradient_right_,
                 sums_.value.row(index_, value_head, key), sums_.value.stride(), /*accumulate=*/true);
    ops_.product(keys, s_.Dk, rows, ops_.left_tile(gradients, left_), kTileQueries, query_right_,
                 sums_.key.row(index_, key_head, key), sums_.key.stride(), /*accumulate=*/true);
    ops_.t.transpose(score_gradients_, kTileQueries, keys, rows, transposed_, kTileKeys);
    if (keys % 2 == 1) {
      for (int64_t i = 0; i < rows; ++i) transposed_[i * kTileKeys + keys] = 0;  // half of a pair
    }
    const Tile turned{transposed_, kTileKeys, rows, round_up(keys, 2)};
    ops_.product(rows, s_.Dk, keys, ops_.left_tile(turned, left_transposed_), kTileKeys, key_rows(h, key),
                 sums_.query.row(index_, h * s_.Hq / s_.H, first), sums_.query.stride(), /*accumulate=*/true);
  }

  static constexpr int64_t kTileSize = kTileKeys * kTileQueries;

  const BackwardProblem<T>& p_;
  const AttentionSizes& s_;
  BackwardSums<T>& sums_;
  const Operands<T>& ops_;
  size_t index_;
  const WorkItem& item_;
  int64_t packed_head_ = -1;
  RightSide<T> query_t_{}, gradient_t_{}, query_right_{}, gradient_right_{};
  // These are pieces of the working memory that the thread keeps.
  T *query_, *gradient_, *query_rows_, *gradient_rows_, *keys_, *left_, *left_transposed_;
  float *weights_, *score_gradients_, *keep_, *transposed_, *lse_, *delta_, *bias_;
};

}  // namespace

template <typename T>
void backward_items(const std::vector<WorkItem>& items, const AttentionSizes& s, const AttentionRule& rule,
                    const AttentionInputs<T>& in, HeadsView<const T> out, const float* lse,
                    HeadsView<const T> out_gradient, const AttentionGradients<T>& gradients, const Machine& machine) {
  const Operands<T> ops{tiles(), *machine.gemm};
  const BackwardProblem<T> problem{s, rule, in, out, lse, out_gradient};
  BackwardSums<T> sums{{machine.allocate, items, gradients.query, s, s.Hq, s.T, s.Dk, /*by_query=*/true},
                       {machine.allocate, items, gradients.key, s, s.Hk, s.S, s.Dk, /*by_query=*/false},
                       {machine.allocate, items, gradients.value, s, s.Hv, s.S, s.Dv, /*by_query=*/false},
                       std::nullopt};
  if (gradients.key_bias != nullptr) {
    const HeadsView<float> bias{gradients.key_bias, s.H * s.S, s.S, 1};
    sums.key_bias.emplace(machine.allocate, items, bias, s, s.H, s.S, /*width=*/1, /*by_query=*/false);
  }
  for_each_item(
      machine, static_cast<int64_t>(items.size()),
      [&](int64_t i, Scratch& scratch) {
        return BackwardItem<T>(problem, sums, ops, static_cast<size_t>(i), items[static_cast<size_t>(i)], scratch);
      },
      [](BackwardItem<T>& kernel, int64_t) { kernel.run(); });
  sums.query.add_up(ops, machine.parallel);
  sums.key.add_up(ops, machine.parallel);
  sums.value.add_up(ops, machine.parallel);
  if (sums.key_bias) sums.key_bias->add_up({tiles(), *machine.gemm}, machine.parallel);
}

template <typename T>
void attention_backward(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
                        HeadsView<const T> out, const float* lse, HeadsView<const T> out_gradient,
                        const AttentionGradients<T>& gradients, const Machine& machine) {
  backward_items(plan_items(sizes, machine.parallel.threads), sizes, rule, in, out, lse, out_gradient, gradients,
                 machine);
}

template void backward_items<float>(const std::vector<WorkItem>&, const AttentionSizes&, const AttentionRule&,
                                    const AttentionInputs<float>&, HeadsView<const float>, const float*,
                                    HeadsView<const float>, const AttentionGradients<float>&, const Machine&);
template void attention_backward<float>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                        HeadsView<const float>, const float*, HeadsView<const float>,
                                        const AttentionGradients<float>&, const Machine&);
template void attention_backward<Bf16>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<Bf16>&,
                                       HeadsView<const Bf16>, const float*, HeadsView<const Bf16>,
                                       const AttentionGradients<Bf16>&, const Machine&);

}  // namespace headshare::kernels
