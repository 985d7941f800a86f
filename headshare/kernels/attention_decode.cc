#include <algorithm>
#include <cmath>
#include <numeric>
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
    const int64_t packed = Operands<T>::packed_size(kPart, s_.Dv);
    rows_ = scratch.take<T>(s_.Dk * kTileQueries);
    query_ = scratch.take<T>(s_.Dk * kTileQueries);
    scores_ = scratch.take<float>(tile);
    turned_ = scratch.take<float>(tile);
    bias_ = scratch.take<float>(kTileKeys);
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

  // scores [kTileKeys, lanes]; afterwards turned_ [heads, kTileKeys] has the weights of these keys.
  void tile(const DecodeItem& item, const RightSide<T>& query, int64_t key, const Tile& scores) {
    if constexpr (std::is_same_v<T, float>) {
      if (item.heads <= kFewHeads) {
        for (int64_t i = 0; i < item.heads; ++i) weights_of_head(item, i, key, scores.keys);
        return add_values(item, key, scores.keys);
      }
    }
    weights_of_heads(item, query, key, scores);
    add_values(item, key, scores.keys);
  }

  // Calls work(first, keys) for the tile's keys a few at a time, asking for those of the next tile in between: one
  // after another, memory would wait for the arithmetic and the arithmetic for memory. `rows` is where they lie.
  template <typename Work>
  void in_parts(const DecodeItem& item, int64_t key, int64_t keys, const T* rows, int64_t stride, int64_t width,
                const Work& work) const {
    for (int64_t j = 0; j < keys; j += kPart) {
      const int64_t ahead = std::min(kPart, item.last_key - key - kTileKeys - j);
      for (int64_t r = 0; r < ahead; ++r) {
        const auto* row = reinterpret_cast<const char*>(rows + (kTileKeys + j + r) * stride);
        for (size_t at = 0; at < static_cast<size_t>(width) * sizeof(T); at += kCacheLine) {
          __builtin_prefetch(row + at, /*write=*/0, /*second cache=*/2);
        }
      }
      work(j, std::min(kPart, keys - j));
    }
  }

  // Many heads: heads along the lanes.
  void weights_of_heads(const DecodeItem& item, const RightSide<T>& query, int64_t key, const Tile& scores) {
    const T* rows = in_.key.at(item.b, item.first_head * s_.Hk / s_.H) + key * in_.key.row;
    in_parts(item, key, scores.keys, rows, in_.key.row, s_.Dk, [&](int64_t j, int64_t keys) {
      ops_.product(keys, scores.lanes, s_.Dk, rows + j * in_.key.row, in_.key.row, query,
                   scores.data + j * scores.stride, scores.stride, /*accumulate=*/false);
    });
    AttentionRule plain = rule_;
    plain.key_bias = nullptr;
    plain.alibi_slopes = nullptr;
    ScoreRule rule = tile_rule(s_, plain, item.b, 0, 0, key, scores.keys, bias_);
    if (rule_.key_bias != nullptr || rule_.alibi_slopes != nullptr) {
      add_head_biases(item, key, scores);
      rule.scale = 1;
    }
    if (ops_.t.softmax_step(scores, rule, m_, l_, fade_)) {
      ops_.t.scaled_rows(out_, s_.Dv, item.heads, s_.Dv, fade_, out_, s_.Dv, /*accumulate=*/false);
    }
    std::fill(turned_, turned_ + item.heads * kTileKeys, 0.0F);  // an odd last key is half of a pair
    ops_.t.transpose(scores.data, scores.stride, scores.keys, item.heads, turned_, kTileKeys);
  }

  // Scores become exponents: the tile's rule knows biases by key only.
  void add_head_biases(const DecodeItem& item, int64_t key, const Tile& scores) const {
    const float scale = rule_.scale * kLog2e;
    for (int64_t i = 0; i < item.heads; ++i) {
      const int64_t h = item.first_head + i;
      const float slope = rule_.alibi_slopes == nullptr ? 0 : rule_.alibi_slopes[h] * kLog2e;
      const float* bias = rule_.key_bias == nullptr ? nullptr : rule_.key_bias + (item.b * s_.H + h) * s_.S + key;
      for (int64_t j = 0; j < scores.keys; ++j) {
        float& score = scores.data[j * scores.stride + i];
        score = (score + (bias == nullptr ? 0 : bias[j])) * scale - slope * static_cast<float>(s_.S - 1 - key - j);
      }
    }
  }

  // One or two heads: keys along the lanes, as most lanes would hold no head.
  void weights_of_head(const DecodeItem& item, int64_t i, int64_t key, int64_t keys) {
    float* row = turned_ + i * kTileKeys;
    const float* rows = in_.key.at(item.b, item.first_head * s_.Hk / s_.H) + key * in_.key.row;
    in_parts(item, key, keys, rows, in_.key.row, s_.Dk, [&](int64_t j, int64_t count) {
      ops_.t.dots(rows + j * in_.key.row, in_.key.row, rows_ + i * s_.Dk, 0, count, s_.Dk, row + j);
    });
    const ScoreRule rule = tile_rule(s_, rule_, item.b, item.first_head + i, 0, key, keys, bias_);
    for (int64_t j = 0; j < keys; ++j) {
      row[j] = row[j] * rule.scale - rule.slope * (rule.distance - static_cast<float>(j));
    }
    for (int64_t j = 0; rule.key_bias != nullptr && j < keys; ++j) row[j] += rule.key_bias[j];
    const int64_t lanes = round_up(keys, kLaneStep);  // a cache may be much shorter than a tile
    std::fill(row + keys, row + lanes, kHidden);
    const float m = std::max(m_[i], largest(row, lanes));
    if (m == kHidden && std::count(row, row + keys, kHidden) == keys) {  // a NaN is not hidden
      std::fill(row, row + lanes, 0.0F);
      return;
    }
    for (int64_t j = 0; j < lanes; ++j) row[j] -= m;
    ops_.t.exp2(row, lanes, row);
    const float fade = std::exp2(m_[i] - m);
    float* out = out_ + i * s_.Dv;
    if (fade != 1) ops_.t.scaled_rows(out, s_.Dv, 1, s_.Dv, &fade, out, s_.Dv, /*accumulate=*/false);
    l_[i] = l_[i] * fade + sum(row, lanes);
    m_[i] = m;
  }

  // But for NaN, in sixteen running results that the compiler keeps in vectors.
  static float largest(const float* row, int64_t lanes) {
    float best[kLaneStep];
    std::fill(best, best + kLaneStep, kHidden);
    for (int64_t j = 0; j < lanes; j += kLaneStep) {
      for (int64_t k = 0; k < kLaneStep; ++k) best[k] = best[k] < row[j + k] ? row[j + k] : best[k];
    }
    return *std::max_element(best, best + kLaneStep);
  }

  static float sum(const float* row, int64_t lanes) {
    float sums[kLaneStep] = {};
    for (int64_t j = 0; j < lanes; j += kLaneStep) {
      for (int64_t k = 0; k < kLaneStep; ++k) sums[k] += row[j + k];
    }
    return std::accumulate(sums, sums + kLaneStep, 0.0F);
  }

  // out += weights V, once for the heads that read the same value head.
  void add_values(const DecodeItem& item, int64_t key, int64_t keys) {
    const T* weights = ops_.left_tile({turned_, kTileKeys, item.heads, round_up(keys, kLaneStep)}, left_);
    for (int64_t i = 0; i < item.heads;) {
      const int64_t head = (item.first_head + i) * s_.Hv / s_.H;
      int64_t last = i + 1;
      while (last < item.heads && (item.first_head + last) * s_.Hv / s_.H == head) ++last;
      const T* value = in_.value.at(item.b, head) + key * in_.value.row;
      in_parts(item, key, keys, value, in_.value.row, s_.Dv, [&](int64_t j, int64_t count) {
        ops_.product(last - i, s_.Dv, count, weights + i * kTileKeys + j, kTileKeys,
                     ops_.right(value + j * in_.value.row, in_.value.row, count, s_.Dv, values_), out_ + i * s_.Dv,
                     s_.Dv, /*accumulate=*/true);
      });
      i = last;
    }
  }

  static constexpr float kHidden = -std::numeric_limits<float>::infinity();
  static constexpr int64_t kFewHeads = 2;
  static constexpr int64_t kPart = 16;

  const AttentionSizes& s_;
  const AttentionRule& rule_;
  const AttentionInputs<T>& in_;
  const Operands<T>& ops_;
  const PartialResult& partial_;
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
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  float m = kHidden;
  for (int64_t p = 0; p < partial.parts; ++p) m = std::max(m, partial.m[first + p]);
  float l = 0;
  float* total = partial.out + first * s.Dv;
  for (int64_t p = 0; p < partial.parts; ++p) {
    const float factor = partial.m[first + p] == kHidden ? 0 : std::exp2(partial.m[first + p] - m);
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
