#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/items.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {
namespace {

// An item is rows (head, query) that read one key head for one sentence, against a part of the keys. The queries of a
// head follow each other.
struct DecodeItem {
  int64_t b, key_head, first_row, rows, first_key, last_key;
  int64_t part;
};

// This is what a part of the keys found for one row; it is merged with the other parts.
struct PartialResult {
  float* m;    // [B, H, T, parts], to the base 2
  float* l;    // [B, H, T, parts]
  float* out;  // [B, H, T, parts, Dv], not divided by l

  int64_t parts;
};

// Queries and the heads that share a key lie along the lanes of a tile, so that a key is read once for all of them.
// Up to kFewRows rows of float32 stay as they are.
template <typename T>
class DecodeTiles {
 public:
  DecodeTiles(const AttentionSizes& sizes, const AttentionRule& rule, const AttentionInputs<T>& in,
              const Operands<T>& ops, const PartialResult& partial, Scratch& scratch)
      : s_(sizes),
        rule_(rule),
        in_(in),
        ops_(ops),
        partial_(partial),
        rows_(scratch.take<T>(s_.Dk * kTileQueries)),
        query_(scratch.take<T>(s_.Dk * kTileQueries)),
        scores_(scratch.take<float>(kTileSize)),
        turned_(scratch.take<float>(kTileSize)),
        bias_(scratch.take<float>(kTileKeys)),
        left_(scratch.take<T>(Operands<T>::packed_size(kTileSize, 1))),
        values_(scratch.take<T>(Operands<T>::packed_size(kPart, s_.Dv))),
        out_(scratch.take<float>(s_.Dv * kTileQueries)),
        m_(scratch.take<float>(kTileQueries)),
        l_(scratch.take<float>(kTileQueries)),
        fade_(scratch.take<float>(kTileQueries)) {}

  void run(const DecodeItem& item) {
    const int64_t lanes = round_up(item.rows, kLaneStep);
    std::fill(m_, m_ + lanes, -std::numeric_limits<float>::infinity());
    std::fill(l_, l_ + lanes, 0.0F);
    std::fill(out_, out_ + lanes * s_.Dv, 0.0F);
    copy_queries(item);
    attend(item, lanes);
    for (int64_t i = 0; i < item.rows; ++i) {
      const int64_t row = (item.b * s_.H + head_of(item, i)) * s_.T + query_of(item, i);
      const int64_t at = row * partial_.parts + item.part;
      partial_.m[at] = m_[i];
      partial_.l[at] = l_[i];
      std::copy(out_ + i * s_.Dv, out_ + (i + 1) * s_.Dv, partial_.out + at * s_.Dv);
    }
  }

 private:
  int64_t head_of(const DecodeItem& item, int64_t i) const {
    return item.key_head * (s_.H / s_.Hk) + (item.first_row + i) / s_.T;
  }
  int64_t query_of(const DecodeItem& item, int64_t i) const { return (item.first_row + i) % s_.T; }

  int64_t value_head_of(const DecodeItem& item, int64_t i) const { return head_of(item, i) * s_.Hv / s_.H; }

  // Returns the end of the rows from i on that read the same values.
  int64_t last_of_values(const DecodeItem& item, int64_t i) const {
    int64_t last = i + 1;
    while (last < item.rows && value_head_of(item, last) == value_head_of(item, i)) ++last;
    return last;
  }

  void copy_queries(const DecodeItem& item) {
    for (int64_t i = 0; i < item.rows; ++i) {
      const T* row = in_.query.at(item.b, head_of(item, i) * s_.Hq / s_.H) + query_of(item, i) * in_.query.row;
      std::copy(row, row + s_.Dk, rows_ + i * s_.Dk);
    }
  }

  void attend(const DecodeItem& item, int64_t lanes) {
    if constexpr (std::is_same_v<T, float>) {
      // Few rows would leave most lanes empty.
      if (item.rows <= kFewRows || item.rows * (item.last_key - item.first_key) <= kFewScores) {
        attend_by_rows(item);
        return;
      }
    }
    const RightSide<T> query = ops_.right_transposed(rows_, s_.Dk, item.rows, s_.Dk, lanes, query_);
    for (int64_t key = item.first_key; key < item.last_key; key += kTileKeys) {
      const Tile scores{scores_, lanes, std::min(kTileKeys, item.last_key - key), lanes};
      score_tile(item, query, key, scores);
      weigh_tile(item, key, scores);
      add_values_of_tile(item, key, scores);
    }
  }

  // Reads the keys of a tile while it reads the values of the tile before: memory serves two streams faster than one
  // after another. A single tile is taken whole.
  void attend_by_rows(const DecodeItem& item) {
    float *weights = turned_, *next = scores_;  // [rows, kTileKeys]
    const int64_t all_keys = item.last_key - item.first_key;
    const int64_t part = all_keys <= kTileKeys ? kTileKeys : kRowPart;
    const int64_t first_keys = std::min(kTileKeys, all_keys);
    for (int64_t j = 0; j < first_keys; j += part) {
      scores_of_part(item, item.first_key + j, std::min(part, first_keys - j), next + j);
    }
    for (int64_t key = item.first_key; key < item.last_key; key += kTileKeys) {
      std::swap(weights, next);
      const int64_t keys = std::min(kTileKeys, item.last_key - key);
      for (int64_t i = 0; i < item.rows; ++i) weigh_row(item, i, key, keys, weights + i * kTileKeys);
      const int64_t keys_after = std::clamp<int64_t>(item.last_key - key - kTileKeys, 0, kTileKeys);
      for (int64_t j = 0; j < keys; j += part) {
        if (j < keys_after) scores_of_part(item, key + kTileKeys + j, std::min(part, keys_after - j), next + j);
        values_of_part(item, key + j, std::min(part, keys - j), weights + j);
      }
    }
  }

  // Computes scores of a few keys, [rows, kTileKeys].
  void scores_of_part(const DecodeItem& item, int64_t key, int64_t keys, float* scores) const {
    const T* const head = in_.key.at(item.b, item.key_head);
    ask_ahead(head, in_.key.row, s_.Dk, key, keys, item.last_key);
    ops_.t.query_scores({head + key * in_.key.row, in_.key.row, keys, s_.Dk}, rows_, s_.Dk, item.rows, scores,
                        kTileKeys);
  }

  // Adds the values of a few keys under their weights, [rows, kTileKeys].
  void values_of_part(const DecodeItem& item, int64_t key, int64_t keys, const float* weights) const {
    for (int64_t i = 0; i < item.rows; i = last_of_values(item, i)) values_of_head(item, i, key, keys, weights);
  }

  // Does the same for the rows that read the values of row i.
  void values_of_head(const DecodeItem& item, int64_t i, int64_t key, int64_t keys, const float* weights) const {
    const T* const head = in_.value.at(item.b, value_head_of(item, i));
    ask_ahead(head, in_.value.row, s_.Dv, key, keys, item.last_key);
    ops_.t.query_values({head + key * in_.value.row, in_.value.row, keys, s_.Dv}, weights + i * kTileKeys, kTileKeys,
                        last_of_values(item, i) - i, out_ + i * s_.Dv, s_.Dv);
  }

  // Asks memory for as many rows as are about to be read, kAhead bytes further on.
  static void ask_ahead(const T* head, int64_t stride, int64_t width, int64_t first, int64_t rows, int64_t last) {
    const auto bytes = width * static_cast<int64_t>(sizeof(T));
    const int64_t ahead = first + (kAhead + bytes - 1) / bytes;
    for (int64_t r = ahead; r < std::min(ahead + rows, last); ++r) {
      const auto* row = reinterpret_cast<const char*>(head + r * stride);
      for (int64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at, /*write=*/0, /*all caches=*/3);
    }
  }

  // Compares a tile's keys with rows that lie along lanes, a few keys at a time.
  void score_tile(const DecodeItem& item, const RightSide<T>& query, int64_t key, const Tile& scores) const {
    const T* const head = in_.key.at(item.b, item.key_head);
    for (int64_t j = 0; j < scores.keys; j += kPart) {
      const Tile part{scores.data + j * scores.stride, scores.stride, std::min(kPart, scores.keys - j), scores.lanes};
      const T* const keys = head + (key + j) * in_.key.row;
      ask_ahead(head, in_.key.row, s_.Dk, key + j, part.keys, item.last_key);
      if constexpr (std::is_same_v<T, float>) {
        ops_.t.lane_scores({keys, in_.key.row, part.keys, s_.Dk}, query.data, part);
      } else {
        ops_.product(part.keys, part.lanes, s_.Dk, keys, in_.key.row, query, part.data, part.stride,
                     /*accumulate=*/false);
      }
    }
  }

  // Turns scores into weights, rows along the lanes.
  void weigh_tile(const DecodeItem& item, int64_t key, const Tile& scores) const {
    AttentionRule plain = rule_;
    plain.key_bias = nullptr;
    plain.alibi_slopes = nullptr;
    ScoreRule rule = tile_rule(s_, plain, item.b, 0, 0, key, scores.keys, bias_);
    if (rule_.key_bias != nullptr || rule_.alibi_slopes != nullptr) {
      add_head_biases(item, key, scores);
      rule.scale = 1;
    }
    if (ops_.t.softmax_step(scores, rule, m_, l_, fade_)) {
      ops_.t.scaled_rows(out_, s_.Dv, item.rows, s_.Dv, fade_, out_, s_.Dv, /*accumulate=*/false);
    }
  }

  // Turns scores into exponents: the tile's rule knows biases by key only.
  void add_head_biases(const DecodeItem& item, int64_t key, const Tile& scores) const {
    const float scale = rule_.scale * kLog2e;
    for (int64_t i = 0; i < item.rows; ++i) {
      const int64_t h = head_of(item, i);
      const float slope = rule_.alibi_slopes == nullptr ? 0 : rule_.alibi_slopes[h] * kLog2e;
      const float* bias = rule_.key_bias == nullptr ? nullptr : rule_.key_bias + (item.b * s_.H + h) * s_.S + key;
      for (int64_t j = 0; j < scores.keys; ++j) {
        float& score = scores.data[j * scores.stride + i];
        score = (score + (bias == nullptr ? 0 : bias[j])) * scale - slope * static_cast<float>(s_.S - 1 - key - j);
      }
    }
  }

  // Turns the scores of a tile into weights: keys lie along the lanes.
  void weigh_row(const DecodeItem& item, int64_t i, int64_t key, int64_t keys, float* row) {
    const ScoreRule rule = tile_rule(s_, rule_, item.b, head_of(item, i), 0, key, keys, bias_);
    const float fade = ops_.t.softmax_row(row, keys, rule, m_ + i, l_ + i);
    float* out = out_ + i * s_.Dv;
    if (fade != 1) ops_.t.scaled_rows(out, s_.Dv, 1, s_.Dv, &fade, out, s_.Dv, /*accumulate=*/false);
  }

  // Computes out += weights V, once for the rows that read the same value head.
  void add_values_of_tile(const DecodeItem& item, int64_t key, const Tile& weights) {
    const T* const turned = turned_weights(item, weights);
    for (int64_t i = 0; i < item.rows;) {
      const int64_t last = last_of_values(item, i);
      const T* const head = in_.value.at(item.b, value_head_of(item, i));
      float* const out = out_ + i * s_.Dv;
      for (int64_t j = 0; j < weights.keys; j += kPart) {
        const Rows<T> values{head + (key + j) * in_.value.row, in_.value.row, std::min(kPart, weights.keys - j), s_.Dv};
        ask_ahead(head, in_.value.row, s_.Dv, key + j, values.count, item.last_key);
        if constexpr (std::is_same_v<T, float>) {
          ops_.t.lane_values(values, weights.data + j * weights.stride + i, weights.stride, last - i, out, s_.Dv);
        } else {
          ops_.product(last - i, s_.Dv, values.count, turned + i * kTileKeys + j, kTileKeys,
                       ops_.right(values.data, values.stride, values.count, s_.Dv, values_), out, s_.Dv,
                       /*accumulate=*/true);
        }
      }
      i = last;
    }
  }

  // Products of bf16 want weights in rows, [rows, kTileKeys].
  const T* turned_weights(const DecodeItem& item, const Tile& weights) {
    if constexpr (std::is_same_v<T, float>) return nullptr;
    std::fill(turned_, turned_ + item.rows * kTileKeys, 0.0F);  // an odd last key is half of a pair
    ops_.t.transpose(weights.data, weights.stride, weights.keys, item.rows, turned_, kTileKeys);
    return ops_.left_tile({turned_, kTileKeys, item.rows, round_up(weights.keys, kLaneStep)}, left_);
  }

  static constexpr int64_t kFewRows = 8;
  static constexpr int64_t kFewScores = 64;
  static constexpr int64_t kPart = std::is_same_v<T, float> ? 8 : 16;  // keys of a step along lanes
  static constexpr int64_t kRowPart = 4;                               // keys of a step by rows
  static constexpr int64_t kAhead = 4096;                              // bytes
  static constexpr int64_t kTileSize = kTileKeys * kTileQueries;

  const AttentionSizes& s_;
  const AttentionRule& rule_;
  const AttentionInputs<T>& in_;
  const Operands<T>& ops_;
  const PartialResult& partial_;
  // These are pieces of the working memory that the thread keeps.
  T *rows_, *query_;
  float *scores_, *turned_, *bias_;
  T *left_, *values_;
  float *out_, *m_, *l_, *fade_;
};

// Plans parts so that every thread has work. A part has at least two tiles of keys, but for what padding cuts off.
std::vector<DecodeItem> plan_decoding(const AttentionSizes& s, const AttentionRule& rule, int64_t threads,
                                      int64_t* parts) {
  const int64_t rows = s.H / s.Hk * s.T;
  const int64_t lane_groups = (rows + kTileQueries - 1) / kTileQueries;
  const int64_t units = s.B * s.Hk * lane_groups;
  const int64_t tiles = (s.S + kTileKeys - 1) / kTileKeys;
  *parts = std::clamp<int64_t>((4 * threads + units - 1) / units, 1, std::max<int64_t>(1, tiles / 2));
  std::vector<DecodeItem> items;
  for (int64_t unit = 0; unit < units; ++unit) {
    const int64_t b = unit / (s.Hk * lane_groups);
    const int64_t key_head = unit / lane_groups % s.Hk;
    const int64_t first = unit % lane_groups * kTileQueries;
    const int64_t count = std::min(kTileQueries, rows - first);
    const int64_t length = visible_length(s, rule, b);
    for (int64_t part = 0; part < *parts; ++part) {
      items.push_back({b, key_head, first, count, std::min(tiles * part / *parts * kTileKeys, length),
                       std::min(tiles * (part + 1) / *parts * kTileKeys, length), part});
    }
  }
  return items;
}

// Merges the parts of one row of all [B, H, T] into one softmax.
template <typename T>
void merge_parts(const AttentionSizes& s, const AttentionRule& rule, const PartialResult& partial, int64_t row,
                 const Operands<T>& ops, HeadsView<T> out) {
  const int64_t first = row * partial.parts;
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
  if (l != 0) l += sink_weight(rule, row / s.T % s.H, m);
  for (int64_t d = 0; d < s.Dv; ++d) total[d] = l == 0 ? 0 : total[d] / l;
  T* const to = out.at(row / s.T / s.H, row / s.T % s.H) + row % s.T * out.row;
  ops.store(total, s.Dv, 1, s.Dv, to, out.row);
}

}  // namespace

template <typename T>
void attention_decode(const AttentionSizes& s, const AttentionRule& rule, const AttentionInputs<T>& in,
                      HeadsView<T> out, const Machine& machine) {
  const Operands<T> ops{tiles(), *machine.gemm};
  PartialResult partial{};
  const std::vector<DecodeItem> items = plan_decoding(s, rule, machine.parallel.threads, &partial.parts);
  const int64_t rows = s.B * s.H * s.T;
  const auto results = static_cast<size_t>(rows * partial.parts * (s.Dv + 2));
  const std::shared_ptr<void> sums = machine.allocate(results * sizeof(float));
  partial.m = static_cast<float*>(sums.get());
  partial.l = partial.m + rows * partial.parts;
  partial.out = partial.l + rows * partial.parts;
  for_each_item(
      machine, static_cast<int64_t>(items.size()),
      [&](int64_t, Scratch& scratch) { return DecodeTiles<T>(s, rule, in, ops, partial, scratch); },
      [&](DecodeTiles<T>& kernel, int64_t i) { kernel.run(items[static_cast<size_t>(i)]); });
  for (int64_t row = 0; row < rows; ++row) merge_parts(s, rule, partial, row, ops, out);
}

template void attention_decode<float>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<float>&,
                                      HeadsView<float>, const Machine&);
template void attention_decode<Bf16>(const AttentionSizes&, const AttentionRule&, const AttentionInputs<Bf16>&,
                                     HeadsView<Bf16>, const Machine&);

}  // namespace headshare::kernels
