// Plans how the blocked kernels cut their work: into items for threads, and an item into tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/tiles.h"

namespace headshare::kernels {

// A tile of 128 keys by 64 queries is 32 KiB of scores: it stays in the first two caches between the
// products, and a causal mask wastes only half a block of queries a row.
constexpr int64_t kTileQueries = 64;
constexpr int64_t kTileKeys = 128;

// A block has at most kTileQueries queries of one head.
struct QueryBlock {
  int64_t head, first, rows;
};

// An item is some heads of one sentence for some of its queries, block by block.
struct WorkItem {
  int64_t b = 0, first_head = 0, last_head = 0, first_query = 0, last_query = 0;
  std::vector<QueryBlock> blocks = {};
};

inline void fill_blocks(WorkItem* item) {
  for (int64_t h = item->first_head; h < item->last_head; ++h) {
    for (int64_t first = item->first_query; first < item->last_query; first += kTileQueries) {
      item->blocks.push_back({h, first, std::min(kTileQueries, item->last_query - first)});
    }
  }
}

// Plans enough items for the threads. Heads that share keys and values stay together as long as possible; queries are
// split last.
inline std::vector<WorkItem> plan_items(const AttentionSizes& s, int64_t threads) {
  const int64_t units = std::gcd(s.Hq, std::gcd(s.Hk, s.Hv));
  const int64_t wanted = 2 * threads;
  int64_t heads = s.H / units;  // of an item
  for (int64_t parts = 2; heads > 1 && s.B * (s.H / heads) < wanted && parts <= s.H / units; ++parts) {
    if (s.H / units % parts == 0) heads = s.H / units / parts;
  }
  const int64_t blocks = (s.T + kTileQueries - 1) / kTileQueries;
  const int64_t short_of = (wanted + s.B * (s.H / heads) - 1) / (s.B * (s.H / heads));
  const int64_t parts = std::clamp<int64_t>(short_of, 1, blocks);
  std::vector<WorkItem> items;
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t h = 0; h < s.H; h += heads) {
      for (int64_t part = 0; part < parts; ++part) {
        items.push_back({b, h, h + heads, blocks * part / parts * kTileQueries,
                         std::min(blocks * (part + 1) / parts * kTileQueries, s.T)});
        fill_blocks(&items.back());
      }
    }
  }
  return items;
}

// They do the work of attention_forward and attention_backward for a part of the queries; gradients of keys and values
// are those that these queries give.
template <typename T>
void forward_items(const std::vector<WorkItem>& items, const AttentionSizes& sizes, const AttentionRule& rule,
                   const AttentionInputs<T>& in, HeadsView<T> out, float* lse, const Machine& machine);
template <typename T>
void backward_items(const std::vector<WorkItem>& items, const AttentionSizes& sizes, const AttentionRule& rule,
                    const AttentionInputs<T>& in, HeadsView<const T> out, const float* lse,
                    HeadsView<const T> out_gradient, const AttentionGradients<T>& gradients, const Machine& machine);

// Returns the length beyond which keys are hidden from the whole sentence: padding at its end costs nothing.
inline int64_t visible_length(const AttentionSizes& s, const AttentionRule& rule, int64_t b) {
  if (rule.visible_keys == nullptr) return s.S;
  int64_t length = s.S;
  while (length > 0 && !rule.visible_keys[b * s.S + length - 1]) --length;
  return length;
}

// Returns how many keys, [0, this), are all that the queries before `last_query` can see.
inline int64_t reachable_keys(const AttentionSizes& s, const AttentionRule& rule, int64_t b, int64_t last_query) {
  const int64_t length = visible_length(s, rule, b);
  return rule.causal ? std::clamp<int64_t>(last_query + s.S - s.T, 0, length) : length;
}

// Returns what the sink of a head adds to a softmax's denominator of exponents to the base 2 that are measured from m.
inline float sink_weight(const AttentionRule& rule, int64_t h, float m) {
  return rule.sinks == nullptr ? 0 : std::exp2(rule.sinks[h] * kLog2e - m);
}

// Returns the rule for the exponents of the tile of keys first_key.. and queries first_query.. of a head; `bias` [keys]
// is room for what its keys add.
inline ScoreRule tile_rule(const AttentionSizes& s, const AttentionRule& rule, int64_t b, int64_t h,
                           int64_t first_query, int64_t first_key, int64_t keys, float* bias) {
  ScoreRule tile;
  tile.scale = rule.scale * kLog2e;
  tile.distance = static_cast<float>(first_query + s.S - s.T - first_key);
  if (rule.alibi_slopes != nullptr) tile.slope = rule.alibi_slopes[h] * kLog2e;
  tile.diagonal = first_key - first_query - (s.S - s.T);
  tile.causal = rule.causal && tile.diagonal + keys > 1;
  if (rule.key_bias != nullptr || rule.visible_keys != nullptr) {
    for (int64_t j = 0; j < keys; ++j) {
      const bool hidden = rule.visible_keys != nullptr && !rule.visible_keys[b * s.S + first_key + j];
      const float added = rule.key_bias != nullptr ? rule.key_bias[(b * s.H + h) * s.S + first_key + j] : 0;
      bias[j] = hidden ? -std::numeric_limits<float>::infinity() : added * tile.scale;
    }
    tile.key_bias = bias;
  }
  return tile;
}

}  // namespace headshare::kernels
