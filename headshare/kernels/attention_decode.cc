#include <cmath>
#include <type_traits>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {
namespace {

// The heads that read one key head for one sentence, against a part of the keys.
struct DecodeItem {
  int64_t b, first_head, heads, first_key, last_key;
  int64_t part;
};

// What a part of the keys found for one head: to be merged with the other parts.
struct PartialResult {
  float* m;    // [B, H, parts], to the base 2
  float* l;    // [B, H, parts]
  float* out;  // [B, H, parts, Dv], not divided by l

  int64_t parts;
};

// One query: heads lie along the lanes of a tile, so that a key head is read once for all of its heads, and a
// tile of weights is turned round, so that values are used where they lie.
template <typename T>
class DecodeTiles {
 public:
  DecodeTiles(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
              const Operands<T>& ops, const PartialResult& partial)
      : s_(sizes), rule_(rule), in_(in), ops_(ops), partial_(partial) {}

  void run(const DecodeItem& item) {
    const int64_t lanes = round_up(item.heads, kLaneStep);
    const RightSide<T> query = pack_queries(item, lanes);
    std::fill(m_, m_ + lanes, -std::numeric_limits<float>::infinity());
    std::fill(l_, l_ + lanes, 0.0F);
    std::fill(out_, out_ + lanes * s_.Dv, 0.0F);
    for (int64_t key = item.first_key; key < item.last_key; key += kTileKeys) {
      tile(item, query, key, {scores_, lanes, std::min(kTileKeys, item.last_key - key), lanes});
    }
    for (int64_t i = 0; i < item.heads; ++i) {
      const int64_t at = (item.b * s_.H + item.first_head + i) * partial_.parts + item.part;
      partial_.m[at] = m_[i];
      partial_.l[at] = l_[i];
      std::copy(out_ + i * s_.Dv, out_ + (i + 1) * s_.Dv, partial_.out + at * s_.Dv);
    }
  }

  // Takes its working memory.
  void lay_out(Scratch& scratch) {
    const int64_t tile = kTileKeys * kTileQueries;
    const int64_t packed = Operands<T>::packed_size(kTileKeys, s_.Dv);
    rows_ = scratch.take<T>(s_.Dk * kTileQueries);
    query_ = scratch.take<T>(s_.Dk * kTileQueries);
    scores_ = scratch.take<float>(tile);
    turned_ = scratch.take<float>(tile);
    bias_ = scratch.take<float>(tile);
    left_ = scratch.take<T>(Operands<T>::packed_size(tile, 1));
    values_ = scratch.take<T>(packed);
    out_ = scratch.take<float>(s_.Dv * kTileQueries);
    m_ = scratch.take<float>(kTileQueries);
    l_ = scratch.take<float>(kTileQueries);
    fade_ = scratch.take<float>(kTileQueries);
  }

 private:
  RightSide<T> pack_queries(const DecodeItem& item, int64_t lanes) {
    for (int64_t i = 0; i < item.heads; ++i) {
      const T* row = in_.query.at(item.b, (item.first_head + i) * s_.Hq / s_.H);
      std::copy(row, row + s_.Dk, rows_ + i * s_.Dk);
    }
    return ops_.right_transposed(rows_, s_.Dk, item.heads, s_.Dk, lanes, query_);
  }

  // What each head adds to each of the keys, [heads, kTileKeys], divided by the scale's factor later: the
  // tile's rule knows biases by key only. Answers whether there is any.
  bool head_biases(const DecodeItem& item, int64_t key, int64_t keys) {
    if (rule_.key_bias == nullptr && rule_.alibi_slopes == nullptr) return false;
    for (int64_t i = 0; i < item.heads; ++i) {
      const int64_t h = item.first_head + i;
      const float slope = rule_.alibi_slopes == nullptr ? 0 : rule_.alibi_slopes[h] * kLog2e;
      const float* bias = rule_.key_bias == nullptr ? nullptr : rule_.key_bias + (item.b * s_.H + h) * s_.S + key;
      for (int64_t j = 0; j < keys; ++j) {
        const float own = bias == nullptr ? 0 : bias[j] * rule_.scale * kLog2e;
        bias_[i * kTileKeys + j] = own - slope * static_cast<float>(s_.S - 1 - key - j);
      }
    }
    return true;
  }

  void tile(const DecodeItem& item, const RightSide<T>& query, int64_t key, const Tile& scores) {
    const T* keys = in_.key.at(item.b, item.first_head * s_.Hk / s_.H) + key * in_.key.row;
    if (std::is_same_v<T, float> && item.heads <= kFewHeads) {
      score_few(item.heads, keys, scores);
    } else {
      ops_.product(scores.keys, scores.lanes, s_.Dk, keys, in_.key.row, query, scores.data, scores.stride,
                   /*accumulate=*/false);
    }
    AttentionRule plain = rule_;
    plain.key_bias = nullptr;
    plain.alibi_slopes = nullptr;
    ScoreRule rule = tile_rule(s_, plain, item.b, 0, 0, key, scores.keys, hidden_);
    if (head_biases(item, key, scores.keys)) {
      for (int64_t j = 0; j < scores.keys; ++j) {
        for (int64_t i = 0; i < item.heads; ++i) {
          float& score = scores.data[j * scores.stride + i];
          score = score * rule.scale + bias_[i * kTileKeys + j];
        }
      }
      rule.scale = 1;
    }
    if (ops_.t.softmax_step(scores, rule, m_, l_, fade_)) {
      ops_.t.scaled_rows(out_, s_.Dv, item.heads, s_.Dv, fade_, out_, s_.Dv);
    }
    std::fill(turned_, turned_ + item.heads * kTileKeys, 0.0F);  // an odd last key is half of a pair
    ops_.t.transpose(scores.data, scores.stride, scores.keys, item.heads, turned_, kTileKeys);
    add_values(item, key, scores.keys);
  }

  // A product would compute all the lanes of a vector for one or two heads.
  void score_few(int64_t heads, const T* keys, const Tile& scores) {
    std::fill(scores.data, scores.data + scores.keys * scores.stride, 0.0F);
    if constexpr (std::is_same_v<T, float>) {
      for (int64_t i = 0; i < heads; ++i) {
        ops_.t.dots(keys, in_.key.row, scores.keys, s_.Dk, rows_ + i * s_.Dk, scores.data + i, scores.stride);
      }
    }
  }

  // out += weights V, once for the heads that read the same value head.
  void add_values(const DecodeItem& item, int64_t key, int64_t keys) {
    const T* weights = ops_.left_tile({turned_, kTileKeys, item.heads, round_up(keys, kLaneStep)}, left_);
    for (int64_t i = 0; i < item.heads;) {
      const int64_t head = (item.first_head + i) * s_.Hv / s_.H;
      int64_t last = i + 1;
      while (last < item.heads && (item.first_head + last) * s_.Hv / s_.H == head) ++last;
      const T* value = in_.value.at(item.b, head) + key * in_.value.row;
      ops_.product(last - i, s_.Dv, keys, weights + i * kTileKeys, kTileKeys,
                   ops_.right(value, in_.value.row, keys, s_.Dv, values_), out_ + i * s_.Dv, s_.Dv,
                   /*accumulate=*/true);
      i = last;
    }
  }

  static constexpr int64_t kFewHeads = 2;

  const AttentionSizes& s_;
  const AttentionRule& rule_;
  const AttentionInputs<T>& in_;
  const Operands<T>& ops_;
  const PartialResult& partial_;
  float hidden_[kTileKeys];
  T *rows_, *query_, *left_, *values_;
  float *scores_, *turned_, *bias_, *out_, *m_, *l_, *fade_;
};

// Parts of about `keys` keys so that every thread has work, none shorter than two tiles.
std::vector<DecodeItem> plan_decoding(const AttentionSizes& s, const AttentionRule& rule, int64_t threads,
                                      int64_t* parts) {
  const int64_t sharing = s.H / s.Hk;
  const int64_t lane_groups = (sharing + kTileQueries - 1) / kTileQueries;
  const int64_t units = s.B * s.Hk * lane_groups;
  const int64_t tiles = (s.S + kTileKeys - 1) / kTileKeys;
  *parts = std::clamp<int64_t>((4 * threads + units - 1) / units, 1, std::max<int64_t>(1, tiles / 2));
  std::vector<DecodeItem> items;
  for (int64_t unit = 0; unit < units; ++unit) {
    const int64_t b = unit / (s.Hk * lane_groups);
    const int64_t head = unit / lane_groups % s.Hk * sharing + unit % lane_groups * kTileQueries;
    const int64_t heads = std::min(kTileQueries, sharing - unit % lane_groups * kTileQueries);
    const int64_t length = visible_length(s, rule, b);
    for (int64_t part = 0; part < *parts; ++part) {
      items.push_back({b, head, heads, std::min(tiles * part / *parts * kTileKeys, length),
                       std::min(tiles * (part + 1) / *parts * kTileKeys, length), part});
    }
  }
  return items;
}

// The parts of one (sentence, head) into one softmax.
template <typename T>
void merge_parts(const AttentionSizes& s, const PartialResult& partial, int64_t b, int64_t h, const Operands<T>& ops,
                 HeadsView<T> out) {
  const int64_t first = (b * s.H + h) * partial.parts;
  float m = -std::numeric_limits<float>::infinity();
  for (int64_t p = 0; p < partial.parts; ++p) m = std::max(m, partial.m[first + p]);
  float l = 0;
  float* total = partial.out + first * s.Dv;
  for (int64_t p = 0; p < partial.parts; ++p) {
    const float factor = std::isinf(partial.m[first + p]) ? 0 : std::exp2(partial.m[first + p] - m);
    l += factor * partial.l[first + p];
    const float* part = partial.out + (first + p) * s.Dv;
    for (int64_t d = 0; d < s.Dv; ++d) total[d] = (p == 0 ? 0 : total[d]) + factor * part[d];
  }
  for (int64_t d = 0; d < s.Dv; ++d) total[d] = l == 0 ? 0 : total[d] / l;
  ops.store(total, s.Dv, 1, s.Dv, out.at(b, h), out.row);
}

}  // namespace

template <typename T>
void attention_decode(const AttentionSizes& s, const AttentionRule& rule, const AttentionInputs<T>& in,
                      HeadsView<T> out, const Machine& machine) {
  const Operands<T> ops{tiles(), *machine.gemm};
  PartialResult partial{};
  const std::vector<DecodeItem> items = plan_decoding(s, rule, machine.parallel.threads, &partial.parts);
  const auto results = static_cast<size_t>(s.B * s.H * partial.parts * (s.Dv + 2));
  const std::shared_ptr<void> sums = machine.allocate(results * sizeof(float));
  partial.m = static_cast<float*>(sums.get());
  partial.l = partial.m + s.B * s.H * partial.parts;
  partial.out = partial.l + s.B * s.H * partial.parts;
  for_each_item(
      machine, static_cast<int64_t>(items.size()), [&](int64_t) { return DecodeTiles<T>(s, rule, in, ops, partial); },
      [&](DecodeTiles<T>& kernel, int64_t i) { kernel.run(items[static_cast<size_t>(i)]); });
  for (int64_t i = 0; i < s.B * s.H; ++i) merge_parts(s, partial, i / s.H, i % s.H, ops, out);
}

template void attention_decode<float>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                      HeadsView<float>, const Machine&);
template void attention_decode<Bf16>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<Bf16>&,
                                     HeadsView<Bf16>, const Machine&);

}  // namespace headshare::kernels
